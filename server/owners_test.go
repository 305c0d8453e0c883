package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// family makes ConfigMaps that own one another.
type family struct {
	*kubernetes.Clientset
	t *testing.T
}

// add makes a ConfigMap; owners with a "!" before them are not let go before it
// is gone.
func (f family) add(name string, owners ...string) types.UID {
	f.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, owner := range owners {
		plain, blocks := strings.CutPrefix(owner, "!")
		cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: plain, UID: f.uid(plain), BlockOwnerDeletion: &blocks,
		})
	}
	made, err := f.CoreV1().ConfigMaps("default").Create(f.t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return made.UID
}

func (f family) uid(name string) types.UID {
	f.t.Helper()
	cm, err := f.CoreV1().ConfigMaps("default").Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return cm.UID
}

// edit changes a ConfigMap, which the collector may be changing too.
func (f family) edit(name string, change func(*corev1.ConfigMap)) {
	f.t.Helper()
	maps := f.CoreV1().ConfigMaps("default")
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cm, err := maps.Get(f.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			change(cm)
			_, err = maps.Update(f.t.Context(), cm, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f family) delete(name string, policy metav1.DeletionPropagation) {
	f.t.Helper()
	err := f.CoreV1().ConfigMaps("default").Delete(f.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil {
		f.t.Fatal(err)
	}
}

// left waits until only these are left, each with its owners: "b<a".
func (f family) left(want ...string) {
	f.t.Helper()
	var got []string
	defer func() {
		if f.t.Failed() {
			f.t.Logf("left: %v", got)
		}
	}()
	eventually(f.t, fmt.Sprintf("only %v", want), func() bool {
		list, err := f.CoreV1().ConfigMaps("default").List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		got = nil
		for _, cm := range list.Items {
			text := cm.Name
			for _, owner := range cm.OwnerReferences {
				text += "<" + owner.Name
			}
			got = append(got, text)
		}
		return slices.Equal(got, want)
	})
}

func TestOwnersTakeTheirOwn(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	f := family{r.admin(t), t}

	t.Run("background", func(t *testing.T) {
		f.t = t
		f.add("a")
		f.add("b", "a")
		f.add("c", "b")
		f.add("stays")
		f.delete("a", metav1.DeletePropagationBackground)
		f.left("stays")
	})
	t.Run("one of two owners", func(t *testing.T) {
		f.t = t
		f.add("a")
		f.add("b", "a", "stays")
		f.delete("a", metav1.DeletePropagationBackground)
		f.left("b<stays", "stays")
		f.delete("b", metav1.DeletePropagationBackground)
	})
	t.Run("orphan", func(t *testing.T) {
		f.t = t
		f.add("a")
		f.add("b", "a")
		f.delete("a", metav1.DeletePropagationOrphan)
		f.left("b", "stays")
		f.delete("b", metav1.DeletePropagationBackground)
	})
	t.Run("foreground", func(t *testing.T) {
		f.t = t
		f.add("a")
		f.add("b", "!a")
		f.add("c", "!b")
		f.edit("c", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/held"} })
		f.delete("a", metav1.DeletePropagationForeground)
		eventually(t, "c being deleted", func() bool {
			cm, err := f.CoreV1().ConfigMaps("default").Get(t.Context(), "c", metav1.GetOptions{})
			return err == nil && cm.DeletionTimestamp != nil
		})
		f.left("a", "b<a", "c<b", "stays")
		f.edit("c", func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
		f.left("stays")
	})
	t.Run("an owner that never was", func(t *testing.T) {
		f.t = t
		maps := f.CoreV1().ConfigMaps("default")
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "stays", UID: "another-life"},
		}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f.left("stays")
	})
}

// TestCyclicOwners: a circle goes when one of it is deleted, and nobody waits
// for ever.
func TestCyclicOwners(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	f := family{r.admin(t), t}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			f.t = t
			f.add("a")
			f.add("b", "!a")
			uid := f.add("c", "!b")
			blocks := true
			f.edit("a", func(cm *corev1.ConfigMap) {
				cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: uid, BlockOwnerDeletion: &blocks}}
			})
			f.left("a<c", "b<a", "c<b")
			f.delete("a", policy)
			f.left()
		})
	}
}

// TestOwnersAfterARestart: what was left half done is found by a
// server that starts.
func TestOwnersAfterARestart(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, nil)
	f := family{r.admin(t), t}
	f.add("a")
	f.add("b", "a")
	f.add("stays")
	f.edit("b", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/held"} })
	f.delete("a", metav1.DeletePropagationBackground)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start(t, dir, nil)
	f.Clientset = r.admin(t)
	f.edit("b", func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
	f.left("stays")
}
