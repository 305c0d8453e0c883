package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// errStalled ends a pull whose registry has begun and says nothing more.
var errStalled = errors.New("it stopped in the middle of the image")

// watchFetching calls stalled, and returns, when nothing of what Podman fetches has
// moved for Config.FetchStall, or returns when ctx ends. What another pull fetches
// counts as well. Where it cannot be seen, as of a service with another temporary
// folder, nothing is ever called stalled.
func (r *Runtime) watchFetching(ctx context.Context, stalled func()) {
	if r.config.FetchDir == "" {
		return
	}
	ticker := time.NewTicker(r.config.FetchStall / 8)
	defer ticker.Stop()
	last, since, service := "", time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var err error
		if service == 0 { // a pull does not outlive its service
			service, err = r.servicePID(ctx)
		}
		mark := ""
		if err == nil {
			mark, err = r.fetchMark(service)
		}
		if err != nil || mark == "" || mark != last {
			last, since = mark, time.Now()
			continue
		}
		if time.Since(since) >= r.config.FetchStall {
			stalled()
			return
		}
	}
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

// fetchMark changes whenever Podman has got some more of an image, or has unpacked
// some more of what it got: it is made of the sizes of the files it keeps for
// that time, and of how far it is in those that it has open. It is empty while there
// are none.
func (r *Runtime) fetchMark(service int) (string, error) {
	var mark strings.Builder
	err := filepath.WalkDir(r.config.FetchDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == r.config.FetchDir {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintln(&mark, path, info.Size())
		}
		return err
	})
	if err != nil || mark.Len() == 0 {
		return "", err
	}
	process := filepath.Join("/proc", strconv.Itoa(service))
	open, err := os.ReadDir(filepath.Join(process, "fd"))
	if err != nil {
		return "", err
	}
	for _, e := range open {
		path, err := os.Readlink(filepath.Join(process, "fd", e.Name()))
		if err != nil || !strings.HasPrefix(path, r.config.FetchDir+"/") {
			continue // closed meanwhile, or another file
		}
		info, _ := os.ReadFile(filepath.Join(process, "fdinfo", e.Name()))
		position, _, _ := strings.Cut(string(info), "\n") // proc(5): "pos:" and how far it is
		fmt.Fprintln(&mark, path, position)
	}
	return mark.String(), nil
}
