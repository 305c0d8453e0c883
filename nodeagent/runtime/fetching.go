package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// errStalled ends a pull whose registry has begun and says nothing more.
var errStalled = errors.New("it stopped in the middle of the image")

// errTooLarge ends a pull of which more came than can be unpacked. No size is known
// before: Podman tells none, and takes as much of a layer as a registry sends.
var errTooLarge = errors.New("less than a tenth of it is left, which is less than came of the image")

// fetchBegin is how long Podman may take to begin with a pull: it makes a folder for it
// before it asks the registry.
const fetchBegin = 10 * time.Second

// beginFetch waits for the turn of a pull that is about to be asked for: one begins at
// a time, so that the folder that is new is its own. The function that it returns waits
// for that folder, and ends the turn; it is "" where none can be seen.
func (r *Runtime) beginFetch(ctx context.Context) (folder func() string, err error) {
	if r.config.FetchDir == "" {
		return func() string { return "" }, nil
	}
	select {
	case r.beginning <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	before, err := filepath.Glob(filepath.Join(r.config.FetchDir, "*"))
	return func() string {
		defer func() { <-r.beginning }()
		if err != nil {
			return ""
		}
		return r.newFolder(ctx, before)
	}, nil
}

// newFolder waits for a folder in Config.FetchDir that is not one of those.
func (r *Runtime) newFolder(ctx context.Context, before []string) string {
	ctx, cancel := context.WithTimeout(ctx, fetchBegin)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-ticker.C:
		}
		now, _ := filepath.Glob(filepath.Join(r.config.FetchDir, "*")) // the pattern is good
		for _, folder := range now {
			if !slices.Contains(before, folder) {
				return folder
			}
		}
	}
}

// watchFetching calls giveUp, and returns, when nothing has moved for Config.FetchStall
// of what Podman fetches into a pull's folder, or when that is too large; or it returns
// when ctx ends. Once the folder is gone, as when Podman tries anew, or where it is "",
// what other pulls fetch counts as well. Without Config.FetchDir, as for a service with
// another temporary folder, nothing is ever given up.
func (r *Runtime) watchFetching(ctx context.Context, folder string, giveUp func(error)) {
	if r.config.FetchDir == "" {
		return
	}
	ticker := time.NewTicker(r.config.FetchStall / 24)
	defer ticker.Stop()
	last, since, service := "", time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := os.Lstat(folder); err != nil {
			folder = r.config.FetchDir
		}
		mark, size, err := r.fetchMark(folder)
		if err == nil && r.tooLarge(size) {
			giveUp(errTooLarge)
			return
		}
		if err == nil && service == 0 { // a pull does not outlive its service
			service, err = r.servicePID(ctx)
		}
		if err == nil && mark != "" {
			var at string
			at, err = positions(service, folder)
			mark += at
		}
		if err != nil || mark == "" || mark != last {
			last, since = mark, time.Now()
			continue
		}
		if time.Since(since) >= r.config.FetchStall {
			giveUp(errStalled)
			return
		}
	}
}

// tooLarge reports whether what was fetched has no room to be unpacked beside: the rest
// is for the pods that run.
func (r *Runtime) tooLarge(size int64) bool {
	var fs unix.Statfs_t
	if unix.Statfs(r.config.FetchDir, &fs) != nil {
		return false
	}
	free, all := int64(fs.Bavail)*int64(fs.Bsize), int64(fs.Blocks)*int64(fs.Bsize)
	return free < all/10 && free < size
}

// servicePID is the process that serves Podman's API, or that holds its socket.
func (r *Runtime) servicePID(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	var pid atomic.Int64
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer(r.config.Socket, &pid)}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://d/_ping", nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(q)
	if err != nil {
		return 0, err
	}
	return int(pid.Load()), response.Body.Close()
}

// fetchMark changes whenever Podman has got some more of an image: it is made of the
// sizes of the files that it keeps in a folder for that time, whose sum is size. It is
// empty while there are none.
func (r *Runtime) fetchMark(folder string) (mark string, size int64, err error) {
	var files strings.Builder
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == r.config.FetchDir {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintln(&files, path, info.Size())
		}
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	})
	return files.String(), size, err
}

// positions changes whenever Podman has unpacked some more of what it got: it is how far
// the service is in the files of a folder that it has open.
func positions(service int, folder string) (string, error) {
	var mark strings.Builder
	process := filepath.Join("/proc", strconv.Itoa(service))
	open, err := os.ReadDir(filepath.Join(process, "fd"))
	if err != nil {
		return "", err
	}
	for _, e := range open {
		path, err := os.Readlink(filepath.Join(process, "fd", e.Name()))
		if err != nil || !strings.HasPrefix(path, folder+"/") {
			continue // closed meanwhile, or another file
		}
		info, _ := os.ReadFile(filepath.Join(process, "fdinfo", e.Name()))
		position, _, _ := strings.Cut(string(info), "\n") // proc(5): "pos:" and how far it is
		fmt.Fprintln(&mark, path, position)
	}
	return mark.String(), nil
}
