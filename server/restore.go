package server

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/store"
)

// ErrDataThere means that Restore found a cluster in the data directory.
var ErrDataThere = errors.New("there is a cluster already")

// Restore puts a backup into a data directory, in which no server may run. The
// database gets a new epoch: nodes that know the old one delete nothing until
// the restore is confirmed, and clients list anew. With replace, a cluster that
// is there is set aside in the directory; otherwise ErrDataThere is returned.
// When it fails, what was there is still there.
func Restore(ctx context.Context, dataDir string, backup io.Reader, replace bool) (api.BackupInfo, error) {
	info, err := restoreInto(ctx, dataDir, backup, replace)
	if err != nil {
		return info, fmt.Errorf("cannot restore into %s: %w", dataDir, err)
	}
	return info, nil
}

func restoreInto(ctx context.Context, dataDir string, backup io.Reader, replace bool) (info api.BackupInfo, err error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return info, err
	}
	there, err := present(dataDir)
	if err != nil {
		return info, err
	}
	if len(there) > 0 && !replace {
		return info, fmt.Errorf("%w (%s)", ErrDataThere, strings.Join(there, ", "))
	}
	unlock, err := store.Lock(dataDir)
	if err != nil {
		return info, err
	}
	defer unlock()
	if err := removeDirs(dataDir, restoreDirs); err != nil {
		return info, err
	}
	fresh, err := os.MkdirTemp(dataDir, restoreDirs)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if info, err = unpack(backup, fresh); err != nil {
		return info, fmt.Errorf("cannot read the backup (is it a file that edgectl backup wrote, and the whole of it?): %w", err)
	}
	if _, err := store.Restore(ctx, fresh, objects.Restamp); err != nil {
		return info, err
	}
	if err := checkKeys(filepath.Join(fresh, pkiDir)); err != nil {
		return info, fmt.Errorf("cannot use the backup, take another: %w", err)
	}
	return info, putInPlace(fresh, dataDir, there)
}

// checkKeys fails when a server could not start with the keys of a backup.
func checkKeys(dir string) error {
	if _, err := auth.OpenAuthority(dir, time.Time{}); err != nil {
		return err
	}
	_, err := auth.OpenTokenKey(dir) // an early backup has none: it is made
	return err
}

// restoreDirs is the pattern of the directories that backups are unpacked into.
const restoreDirs = ".restore-*"

// refuseHalfRestored fails when a restore was broken off, by a kill or for want of
// power, and left a data directory without a database: a server that began an
// empty cluster there would hide both the old one and the restored.
func refuseHalfRestored(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, restoreDirs))
	if err != nil || len(left) == 0 {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, store.FileName)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fmt.Errorf("cannot use %s: a restore into it is under way or was broken off, and there is no database: run bramble-server restore --replace again; "+
		"to go back to the cluster that was there instead, move what is in %s back into it and remove %s", dir, filepath.Join(dir, asideDirs), left[0])
}

// putInPlace moves a restored cluster into the data directory, and what is there
// into a directory beside it. When it fails, all is as it was.
func putInPlace(fresh, dataDir string, there []string) error {
	replaced, err := aside(dataDir, there)
	var placed []string
	// The authority first: a server refuses an empty database beside one.
	for _, name := range []string{pkiDir, store.FileName} {
		if err == nil {
			err = os.Rename(filepath.Join(fresh, name), filepath.Join(dataDir, name))
			placed = append(placed, name)
		}
	}
	if err != nil {
		return errors.Join(err, back(dataDir, replaced, placed))
	}
	return syncDir(dataDir)
}

// present returns what a data directory has of a cluster.
func present(dataDir string) (names []string, err error) {
	for _, name := range []string{store.FileName, store.FileName + "-wal", store.FileName + "-shm", pkiDir} {
		_, err := os.Lstat(filepath.Join(dataDir, name))
		switch {
		case err == nil:
			names = append(names, name)
		case !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
	}
	return names, nil
}

// asideDirs is the pattern of the directories that replaced clusters are kept in.
const asideDirs = "replaced-*"

// aside moves files into a new directory beside them, so that nothing is lost. It
// returns the directory, also with an error; "" for no files.
func aside(dataDir string, names []string) (string, error) {
	if len(names) == 0 {
		return "", nil
	}
	dir, err := os.MkdirTemp(dataDir, asideDirs)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(dataDir, name), filepath.Join(dir, name)); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// back removes what was placed and undoes aside.
func back(dataDir, replaced string, placed []string) (err error) {
	for _, name := range placed {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dataDir, name)))
	}
	if replaced == "" {
		return err
	}
	entries, failed := os.ReadDir(replaced)
	err = errors.Join(err, failed)
	for _, e := range entries {
		err = errors.Join(err, os.Rename(filepath.Join(replaced, e.Name()), filepath.Join(dataDir, e.Name())))
	}
	return errors.Join(err, os.Remove(replaced))
}

// What a backup may have: no database of ours comes near the first. The others
// bound what is not the database.
const (
	maxRestored = 4 << 30
	maxPKIFiles = 64
	maxPKIFile  = 1 << 20
)

// unpack writes a backup's files into dir. It takes only what a backup has.
func unpack(backup io.Reader, dir string) (info api.BackupInfo, err error) {
	zip, err := gzip.NewReader(backup)
	if err != nil {
		return info, err
	}
	if err := os.Mkdir(filepath.Join(dir, pkiDir), 0o700); err != nil {
		return info, err
	}
	archive := tar.NewReader(zip)
	found := map[string]bool{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return info, err
		}
		name := header.Name
		pki, isPKI := strings.CutPrefix(name, pkiDir+"/")
		switch {
		case header.Typeflag != tar.TypeReg || header.Size > maxRestored, isPKI && (header.Size > maxPKIFile || len(found) >= maxPKIFiles):
			return info, fmt.Errorf("%q is not of a backup", name)
		case name == backupInfo:
			err = json.NewDecoder(io.LimitReader(archive, 64<<10)).Decode(&info)
		case name == store.FileName, isPKI && pki != "" && filepath.Base(pki) == pki && pki != "." && pki != "..":
			err = writeSynced(filepath.Join(dir, name), archive)
		default:
			return info, fmt.Errorf("%q is not of a backup", name)
		}
		if err != nil {
			return info, err
		}
		found[name] = true
	}
	if _, err := io.Copy(io.Discard, zip); err != nil { // its checksum
		return info, err
	}
	for _, name := range []string{backupInfo, store.FileName, pkiDir + "/ca.crt", pkiDir + "/ca.key"} {
		if !found[name] {
			return info, fmt.Errorf("%s is missing in it", name)
		}
	}
	return info, nil
}

func writeSynced(path string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
