package cluster

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// TestImage is the image that LoadImage makes: busybox, with all its applets.
const TestImage = "localhost/bramble/busybox:1"

// LoadImage gives the user TestImage.
func (u *User) LoadImage(ctx context.Context) error { return u.LoadImageAs(ctx, TestImage) }

// LoadImageAs gives the user an image ref made from the machine's
// busybox-static package: no registry is needed.
func (u *User) LoadImageAs(ctx context.Context, ref string) error {
	archive := filepath.Join(u.Home, "busybox.tar")
	f, err := os.OpenFile(archive, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer os.Remove(archive)
	if err := WriteBusyboxRoot(ctx, f); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	_, err = u.Podman(ctx, "import", "--change", "CMD=/bin/sh", "--change", "ENV=PATH=/bin", archive, ref)
	return err
}

// WriteBusyboxRoot writes a root file system as a tar: /bin/busybox, a link
// for each applet, and the directories and accounts that programs expect.
func WriteBusyboxRoot(ctx context.Context, w io.Writer) error {
	binary, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return fmt.Errorf("cannot read busybox (apt install busybox-static): %w", err)
	}
	list, err := exec.CommandContext(ctx, "/bin/busybox", "--list").Output()
	if err != nil {
		return fmt.Errorf("cannot list busybox's applets: %w", err)
	}
	tw := tar.NewWriter(w)
	add := func(h *tar.Header, body []byte) {
		h.Size = int64(len(body))
		if err == nil {
			err = tw.WriteHeader(h)
		}
		if err == nil {
			_, err = tw.Write(body)
		}
	}
	for _, dir := range []string{"bin/", "etc/", "proc/", "sys/", "dev/", "run/", "root/", "www/", "var/"} {
		add(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
	}
	add(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
	add(&tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"))
	add(&tar.Header{Typeflag: tar.TypeReg, Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\nnogroup:x:65534:\n"))
	add(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, binary)
	for applet := range strings.FieldsSeq(string(list)) {
		if applet != "busybox" {
			add(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox", Mode: 0o777}, nil)
		}
	}
	if err != nil {
		return err
	}
	return tw.Close()
}
