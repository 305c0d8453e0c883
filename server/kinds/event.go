package kinds

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"bramble.dev/bramble/server/admission"
	"bramble.dev/bramble/server/objects"
)

func event() *objects.Kind {
	return &objects.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Event"),
		Plural:           "events", Singular: "event", ShortNames: []string{"ev"},
		Namespaced: true,
		New:        func() objects.Object { return &corev1.Event{} },
		NewList:    func() runtime.Object { return &corev1.EventList{} },

		Volatile: func(string) bool { return true },
		FieldNames: []string{
			"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
			"reason", "reportingComponent", "source", "type",
		},
		Fields: eventFields,
		Strategy: objects.Strategy{
			Default:        on(admission.DefaultEvent),
			Validate:       check(admission.ValidateEvent),
			ValidateUpdate: checkBoth(admission.ValidateEventUpdate),
		},

		Columns: []metav1.TableColumnDefinition{
			column("Last Seen", "string", "Time since this was seen last"),
			column("Type", "string", "Normal or Warning"),
			column("Reason", "string", "Why, in a word"),
			column("Object", "string", "What it is about"),
			wide("Subobject", "string", "The part of it that it is about"),
			wide("Source", "string", "What reports it"),
			column("Message", "string", "What happened"),
			wide("First Seen", "string", "Time since this was seen first"),
			wide("Count", "string", "How often this was seen"),
			{Name: "Name", Type: "string", Format: "name", Description: "The event's own name", Priority: 1},
		},
		NoAge: true,
		Row:   eventRow,
	}
}

func eventFields(obj objects.Object) fields.Set {
	e := obj.(*corev1.Event)
	about := &e.InvolvedObject
	return fields.Set{
		"involvedObject.kind":            about.Kind,
		"involvedObject.namespace":       about.Namespace,
		"involvedObject.name":            about.Name,
		"involvedObject.uid":             string(about.UID),
		"involvedObject.apiVersion":      about.APIVersion,
		"involvedObject.resourceVersion": about.ResourceVersion,
		"involvedObject.fieldPath":       about.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         orElse(e.Source.Component, e.ReportingController),
		"type":                           e.Type,
	}
}

func eventRow(obj objects.Object, now time.Time) []any {
	e := obj.(*corev1.Event)
	first, last, count := eventTimes(e)
	about := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		about += "/" + e.InvolvedObject.Name
	}
	return []any{
		since(last, now), e.Type, e.Reason, about, e.InvolvedObject.FieldPath, eventSource(e),
		strings.TrimSpace(e.Message), since(first, now), int64(count), e.Name,
	}
}

// eventTimes reads both kinds of events: those that count (core/v1) and those
// that have a time and perhaps a series (events.k8s.io/v1).
func eventTimes(e *corev1.Event) (first, last time.Time, count int32) {
	first, last, count = e.FirstTimestamp.Time, e.LastTimestamp.Time, e.Count
	if first.IsZero() {
		first = e.EventTime.Time
	}
	if last.IsZero() {
		last = first
	}
	if e.Series != nil {
		last, count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	return first, last, max(count, 1)
}

func eventSource(e *corev1.Event) string {
	component := orElse(e.Source.Component, e.ReportingController)
	instance := orElse(e.Source.Host, e.ReportingInstance)
	if instance == "" {
		return component
	}
	return component + ", " + instance
}
