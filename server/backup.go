package server

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/store"
)

// Names in a backup.
const (
	backupInfo = "backup.json"
	pkiDir     = "pki"
)

// backups serves api.BackupPath.
type backups struct {
	store *store.Store
	dir   string // the data directory
	now   func() time.Time
	log   *slog.Logger
	turn  chan struct{} // of capacity 1: each backup is a copy of the database on the disk
	// patience is for a client that takes nothing; a thin link takes its time.
	patience time.Duration
}

// backupPatience ends a backup whose client takes nothing for so long: the next may
// be waiting.
const backupPatience = time.Minute

// eachInTime gives each write of an answer its own deadline.
type eachInTime struct {
	w        http.ResponseWriter
	patience time.Duration
}

func (e eachInTime) Write(p []byte) (int, error) {
	_ = http.NewResponseController(e.w).SetWriteDeadline(time.Now().Add(e.patience)) // not every writer has one
	return e.w.Write(p)
}

// ServeHTTP follows http.Handler.
func (b backups) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		answerError(w, apierrors.NewMethodNotSupported(schema.GroupResource{Group: api.Group, Resource: "backup"}, r.Method))
		return
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	default:
		w.Header().Set("Retry-After", "10")
		answerError(w, apierrors.NewTooManyRequests("another backup is being made: wait until it is done", 10))
		return
	}
	copied, err := b.copyDatabase(r.Context())
	if err != nil {
		b.log.Error("cannot make a backup", "err", err)
		answerError(w, apierrors.NewInternalError(errors.New("cannot make a backup: is the server's disk full? Its log has more")))
		return
	}
	defer os.RemoveAll(copied)
	w.Header().Set("Content-Type", "application/gzip")
	if err := b.write(eachInTime{w, b.patience}, copied); err != nil {
		b.log.Warn("a backup was broken off", "err", err)
		panic(http.ErrAbortHandler) // so that the client does not take it for whole
	}
}

// copyDatabase returns a new directory with a copy of the database in it.
func (b backups) copyDatabase(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp(b.dir, backupDirs)
	if err != nil {
		return "", err
	}
	if err := b.store.Backup(ctx, filepath.Join(dir, store.FileName)); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// backupDirs is the pattern of the directories that copies lie in.
const backupDirs = ".backup-*"

// removeDirs removes what a server or a restore left that was killed.
func removeDirs(dir, pattern string) error {
	left, err := filepath.Glob(filepath.Join(dir, pattern))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

func (b backups) write(w io.Writer, copied string) error {
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	info, err := json.MarshalIndent(api.BackupInfo{
		Epoch: b.store.Epoch(), Taken: b.now().UTC().Format(time.RFC3339), Version: api.BuildVersion,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := addBytes(archive, backupInfo, info); err != nil {
		return err
	}
	files, err := os.ReadDir(filepath.Join(b.dir, pkiDir))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(b.dir, pkiDir, file.Name()))
		if err == nil {
			err = addBytes(archive, pkiDir+"/"+file.Name(), data)
		}
		if err != nil {
			return err
		}
	}
	if err := addFile(archive, store.FileName, filepath.Join(copied, store.FileName)); err != nil {
		return err
	}
	return errors.Join(archive.Close(), zip.Close())
}

func addBytes(archive *tar.Writer, name string, data []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}

func addFile(archive *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

// restores serves api.RestorePath.
type restores struct {
	store *store.Store
	log   *slog.Logger
}

// ServeHTTP follows http.Handler.
func (s restores) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		if err := s.store.ConfirmRestore(r.Context()); err != nil {
			s.log.Error("cannot serve request", "path", r.URL.Path, "err", err)
			answerError(w, apierrors.NewInternalError(errors.New("cannot confirm the restore: the server's log has more")))
			return
		}
		s.log.Info("the restore is confirmed: nodes follow this database", "epoch", s.store.Epoch())
	default:
		answerError(w, apierrors.NewMethodNotSupported(schema.GroupResource{Group: api.Group, Resource: "restore"}, r.Method))
		return
	}
	l := s.store.Lineage()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(api.RestoreStatus{Epoch: l.Epoch, Follows: l.Follows, Confirmed: l.Confirmed}); err != nil {
		s.log.Debug("cannot answer", "path", r.URL.Path, "err", err)
	}
}

// answerError answers with an error's Status.
func answerError(w http.ResponseWriter, err apierrors.APIStatus) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(&status) // the client may be gone
}

// follows returns the epochs whose place the database has taken.
func follows(s *store.Store) []string {
	if l := s.Lineage(); l.Confirmed {
		return l.Follows
	}
	return nil
}

// warnUnconfirmed logs, at a start, that nodes wait.
func warnUnconfirmed(s *store.Store, log *slog.Logger) {
	if l := s.Lineage(); !l.Confirmed {
		log.Warn("the database is a restored backup: nodes keep all their pods until `edgectl restore --confirm` says that it takes the place of the lost one", "epoch", l.Epoch)
	}
}
