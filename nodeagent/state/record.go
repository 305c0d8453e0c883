package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
)

// Record is the open record. All methods are safe for concurrent use; those
// that change something return when it is on the disk.
type Record struct {
	dir string
	log *slog.Logger

	mu    sync.Mutex // protects what follows
	facts Facts
	pods  map[string]*Pod // by uid; values are replaced, never changed
	last  netip.Addr      // the address allotted last
	// unwritten are the uids of pods whose file is older than what pods has.
	unwritten map[string]bool
}

// Open reads the record in dir; ErrNotJoined when there is none. What is corrupt
// is set aside with a line in the log.
func Open(dir string, log *slog.Logger) (*Record, error) {
	if err := os.MkdirAll(filepath.Join(dir, "pods"), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the state directory: %w", err)
	}
	r := &Record{dir: dir, log: log, pods: map[string]*Pod{}, unwritten: map[string]bool{}}
	if err := r.readFacts(); err != nil {
		return nil, err
	}
	if err := r.readPods(); err != nil {
		return nil, err
	}
	return r, nil
}

// The files of the node's facts. Without them no pod can be run, so that there is a
// second one, for a card that loses a sector.
const (
	factsFile = "node.json"
	factsCopy = "node.json.copy"
)

func (r *Record) readFacts() error {
	path := filepath.Join(r.dir, factsFile)
	err := readJSON(path, &r.facts)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotJoined
	}
	r.facts = Facts{}
	if readJSON(filepath.Join(r.dir, factsCopy), &r.facts) != nil {
		return fmt.Errorf("cannot read the node's facts, %s (join again to make them anew): %w", path, err)
	}
	r.log.Error("the node's facts cannot be read, and their copy is used: is the card failing?", "file", path, "err", err)
	if _, err := setAside(path); err != nil {
		return fmt.Errorf("cannot set the node's damaged facts aside: %w", err)
	}
	return writeFacts(r.dir, r.facts)
}

func (r *Record) readPods() error {
	entries, err := os.ReadDir(filepath.Join(r.dir, "pods"))
	if err != nil {
		return fmt.Errorf("cannot read the pods' records: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(r.dir, "pods", e.Name())
		if strings.HasPrefix(e.Name(), ".new-") {
			_ = os.Remove(path) // a write that a power cut ended
			continue
		}
		uid, isPod := strings.CutSuffix(e.Name(), ".json")
		if !isPod {
			continue
		}
		pod, err := readPod(path, uid)
		if err != nil { // one bad sector must not keep the other pods down
			aside, asideErr := setAside(path)
			r.log.Error("a pod's record cannot be read and was set aside; the server still has the pod", "file", aside, "err", errors.Join(err, asideErr))
			continue
		}
		r.pods[uid] = pod
	}
	return nil
}

func readPod(path, uid string) (*Pod, error) {
	var pod Pod
	if err := readJSON(path, &pod); err != nil {
		return nil, err
	}
	if pod.Pod == nil || string(pod.Pod.UID) != uid {
		return nil, fmt.Errorf("%w: it is not of pod %s", errCorrupt, uid)
	}
	return &pod, nil
}

// Facts returns what the node knows of its cluster.
func (r *Record) Facts() Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.facts
}

// SetFacts replaces them.
func (r *Record) SetFacts(facts Facts) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := writeFacts(r.dir, facts); err != nil {
		return err
	}
	r.facts = facts
	return nil
}

func writeFacts(dir string, facts Facts) error {
	data, err := json.MarshalIndent(facts, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the node's facts: %w", err)
	}
	data = append(data, '\n')
	if err := writeFile(filepath.Join(dir, factsCopy), data); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, factsFile), data)
}

// Pods returns all pods of the record, sorted by uid. They must not be changed.
func (r *Record) Pods() []*Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Pod, 0, len(r.pods))
	for _, uid := range slices.Sorted(maps.Keys(r.pods)) {
		all = append(all, r.pods[uid])
	}
	return all
}

// Pod returns one pod, which must not be changed, or nil.
func (r *Record) Pod(uid string) *Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[uid]
}

// Keep records a pod, allotting its address when it is new, and returns the
// record. The objects that it uses are kept from before. It writes only what
// changed. A node without a free address returns ErrNoAddress and no record;
// with any other error the record holds until the process ends, and Mend tries to
// write it again.
func (r *Record) Keep(pod *corev1.Pod) (*Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := &Pod{Pod: Trim(pod), Failover: api.Failover(pod)}
	if old := r.pods[string(pod.UID)]; old != nil {
		next.Address, next.ConfigMaps, next.Secrets = old.Address, old.ConfigMaps, old.Secrets
		if next.Pod.Status.StartTime == nil {
			next.Pod.Status.StartTime = old.Pod.Status.StartTime
		}
	}
	if !next.Address.IsValid() {
		addr, err := r.allot(pod.Status.PodIP)
		if err != nil {
			return nil, fmt.Errorf("cannot record pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		next.Address = addr
	}
	return next, r.write(next)
}

// Condemn records that a pod is on its way out though the server no longer has
// it, so that no later start brings it back. It succeeds when there is none.
func (r *Record) Condemn(uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.pods[uid]
	if old == nil || old.Pod.DeletionTimestamp != nil {
		return nil
	}
	next := *old
	next.Pod = old.Pod.DeepCopy()
	now := metav1.Now()
	next.Pod.DeletionTimestamp = &now
	return r.write(&next)
}

// write records a pod, in memory also where the disk refuses it: its address is
// its own from then on. The caller holds r.mu.
func (r *Record) write(pod *Pod) error {
	uid := string(pod.Pod.UID)
	r.pods[uid] = pod
	data, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("cannot encode the record of a pod: %w", err)
	}
	r.unwritten[uid] = true
	if err := writeFile(r.path(uid), data); err != nil {
		return err
	}
	delete(r.unwritten, uid)
	return nil
}

// Mend writes what the disk refused before. It does nothing when there is
// nothing of the kind.
func (r *Record) Mend() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.unwritten {
		if err := r.write(r.pods[uid]); err != nil {
			return err
		}
	}
	return nil
}

// Drop forgets a pod and frees its address. It succeeds when there is none.
func (r *Record) Drop(uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := removeFile(r.path(uid)); err != nil {
		return err
	}
	delete(r.pods, uid)
	delete(r.unwritten, uid)
	return nil
}

func (r *Record) path(uid string) string {
	return filepath.Join(r.dir, "pods", filepath.Base(uid)+".json")
}

// allot returns an address of the node's range that no pod has: the one that the
// pod is said to have, where its own record was lost. The caller holds r.mu.
func (r *Record) allot(said string) (netip.Addr, error) {
	prefix, err := netip.ParsePrefix(r.facts.PodCIDR)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cannot use the node's pod range: %w", err)
	}
	taken := make(map[netip.Addr]bool, len(r.pods))
	for _, pod := range r.pods {
		if !pod.over() { // one that is over has given its address back
			taken[pod.Address] = true
		}
	}
	if had, err := netip.ParseAddr(said); err == nil && usable(prefix, had) && !taken[had] {
		return had, nil
	}
	addr, err := free(prefix, r.last, taken)
	if err == nil {
		r.last = addr
	}
	return addr, err
}
