package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeHardwareHistory is what a node's board said within the last hour. It has the
// node's name, and is not stored: the server remembers it from the reports.
type NodeHardwareHistory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Samples are what was reported, the oldest first: a report holds until the next.
	// The first may be older than an hour: it is what held when the hour began.
	Samples []HardwareSample `json:"samples,omitempty"`
}

// HardwareSample is a report of a board.
type HardwareSample struct {
	// AgeSeconds is how long ago the server heard of it, by its own clock.
	AgeSeconds           int64  `json:"ageSeconds"`
	SoCTemperatureMilliC *int64 `json:"socTemperatureMilliC,omitempty"`
	// Conditions are those that were True, sorted.
	Conditions []string `json:"conditions,omitempty"`
}

// NodeHardwareHistoryList is a list of NodeHardwareHistory. It exists for the scheme:
// histories are read one at a time.
type NodeHardwareHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeHardwareHistory `json:"items"`
}
