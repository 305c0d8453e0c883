package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"bramble.dev/bramble/server/api"
)

// Kinds of records.
const (
	recordTokens = "jointokens." + api.Group
	recordNodes  = "nodekeys." + api.Group
)

// RecordKinds are all kinds of records. A join token's grows with each node that used it.
func RecordKinds() []string { return []string{recordTokens, recordNodes} }

// ErrChanged is what Records returns when the record is not as it was.
var ErrChanged = errors.New("the record was changed meanwhile")

// Record is a small durable piece of JSON with the revision it was read at.
type Record struct {
	Name string
	Rev  uint64
	Body []byte
}

// Records keeps records by kind and name; package server gives it the store.
// A write is on disk when it returns.
type Records interface {
	ListRecords(kind string) ([]Record, error)
	GetRecord(kind, name string) (Record, bool)
	// PutRecord writes if the record is still at r.Rev (0: does not exist) and
	// returns its new revision, or ErrChanged.
	PutRecord(ctx context.Context, kind string, r Record) (uint64, error)
	// DeleteRecord deletes what is still at r.Rev, or returns ErrChanged.
	DeleteRecord(ctx context.Context, kind string, r Record) error
}

func decodeRecord(r Record, into any) error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("cannot decode record %s: %w", r.Name, err)
	}
	return nil
}

func encodeRecord(name string, rev uint64, from any) (Record, error) {
	body, err := json.Marshal(from)
	if err != nil {
		return Record{}, fmt.Errorf("cannot encode record %s: %w", name, err)
	}
	return Record{Name: name, Rev: rev, Body: body}, nil
}
