package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"bramble.dev/bramble/test/cluster"
)

// TestInformerSurvivesRestarts holds a client-go informer against 2,000 changes
// (BRAMBLE_INFORMER_CHANGES) with the server killed and restarted 3 times
// (BRAMBLE_INFORMER_RESTARTS) in between: revisions never go backwards, the
// final state is the server's, every deletion is delivered.
func TestInformerSurvivesRestarts(t *testing.T) {
	changes := number(t, "BRAMBLE_INFORMER_CHANGES", 2000)
	restarts := number(t, "BRAMBLE_INFORMER_RESTARTS", 3)
	s := cluster.StartServer(t)
	client := s.Client()
	seen := newWitness()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(seen); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())

	source := rand.New(rand.NewPCG(1, 2))
	alive, deleted := map[string]string{}, map[string]bool{}
	for i := range changes {
		if restarts > 0 && i%(changes/(restarts+1)) == changes/(restarts+1)-1 {
			s.Kill()
			s.Start()
		}
		name := fmt.Sprintf("c%d", source.IntN(100))
		if err := change(t.Context(), client, name, strconv.Itoa(i), source.IntN(4) == 0, alive, deleted); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}

	// client-go waits up to 30 s, doubled by its jitter, after it has lost its watch often.
	cluster.Eventually(t, 150*time.Second, func() string { return cmp.Diff(alive, content(informer)) })
	cluster.Eventually(t, 10*time.Second, func() string { return cmp.Diff(deleted, seen.missing(deleted)) })
	for _, problem := range seen.problems() {
		t.Error(problem)
	}
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != len(alive) {
		t.Errorf("the server has %d objects, want %d", len(list.Items), len(alive))
	}
}

// change makes one random change, and notes what is alive and what is deleted.
func change(ctx context.Context, client *kubernetes.Clientset, name, value string, remove bool, alive map[string]string, deleted map[string]bool) error {
	configMaps := client.CoreV1().ConfigMaps("default")
	body := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": value}}
	_, exists := alive[name]
	switch {
	case exists && remove:
		object, err := configMaps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := configMaps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		delete(alive, name)
		deleted[string(object.UID)] = true
		return nil
	case exists:
		if _, err := configMaps.Update(ctx, body, metav1.UpdateOptions{}); err != nil {
			return err
		}
	default:
		if _, err := configMaps.Create(ctx, body, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	alive[name] = value
	return nil
}

func content(informer cache.SharedIndexInformer) map[string]string {
	now := map[string]string{}
	for _, o := range informer.GetStore().List() {
		object := o.(*corev1.ConfigMap)
		now[object.Name] = object.Data["v"]
	}
	return now
}

// witness notes what an informer's handler is told.
type witness struct {
	mu        sync.Mutex // guards all
	revisions map[string]uint64
	deletions map[string]bool
	wrong     []string
}

func newWitness() *witness {
	return &witness{revisions: map[string]uint64{}, deletions: map[string]bool{}}
}

func (w *witness) OnAdd(o any, _ bool) { w.see(o.(*corev1.ConfigMap)) }
func (w *witness) problems() []string  { w.mu.Lock(); defer w.mu.Unlock(); return w.wrong }

// OnUpdate is also how client-go tells that an object was deleted and made
// again under its name while the watch was down: the UID is another.
func (w *witness) OnUpdate(before, o any) {
	if before.(*corev1.ConfigMap).UID != o.(*corev1.ConfigMap).UID {
		w.OnDelete(before)
	}
	w.see(o.(*corev1.ConfigMap))
}

func (w *witness) see(o *corev1.ConfigMap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if last := w.revisions[string(o.UID)]; err != nil || revision < last {
		w.wrong = append(w.wrong, fmt.Sprintf("%s went from revision %d to %q", o.Name, last, o.ResourceVersion))
	}
	if w.deletions[string(o.UID)] {
		w.wrong = append(w.wrong, fmt.Sprintf("%s came back after its deletion", o.Name))
	}
	w.revisions[string(o.UID)] = revision
}

func (w *witness) OnDelete(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deletions[string(o.(*corev1.ConfigMap).UID)] = true
}

// missing returns those of want that were delivered; want itself when all were.
// An object that came and went between two lists was never seen, and no
// deletion of it is owed.
func (w *witness) missing(want map[string]bool) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := maps.Clone(want)
	for uid := range want {
		if _, known := w.revisions[uid]; known && !w.deletions[uid] {
			delete(got, uid)
		}
	}
	return got
}
