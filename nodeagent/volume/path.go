package volume

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// local refuses a name that is not one plain component of a path.
func local(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q cannot be the name of a directory", name)
	}
	return nil
}

// within refuses a file's path that is not a clean one inside its volume, or
// that begins with "..": those names are the volume's own (..data).
func within(name string) error {
	if name == "." || !filepath.IsLocal(name) || path.Clean(name) != name || strings.HasPrefix(name, "..") || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%q cannot be a path in a volume", name)
	}
	return nil
}

// top is the first component of a path.
func top(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

// inVolume refuses a subPath that is not a path inside its volume.
func inVolume(subPath string) error {
	if subPath == "" || filepath.IsAbs(subPath) || slices.Contains(strings.Split(subPath, "/"), "..") || strings.ContainsRune(subPath, 0) {
		return fmt.Errorf("subPath %q must be a relative path without '..'", subPath)
	}
	return nil
}
