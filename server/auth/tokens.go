package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/api"
)

// Limits of join tokens.
const (
	defaultTokenLife = time.Hour
	maxTokenLife     = 30 * 24 * time.Hour
	maxTokenUses     = 1000
	maxTokens        = 1000
	keepDeadTokens   = 24 * time.Hour // so that a late comer is told what is wrong
)

const wayOut = "make another with: edgectl token create"

// token is a join token as it is stored. Times are the server's Clock.
type token struct {
	Hash    string     `json:"hash"` // SHA-256 of the secret, hex
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
	Uses    int        `json:"uses"`
	UsedBy  []tokenUse `json:"usedBy,omitempty"`
}

type tokenUse struct {
	Node string `json:"node"`
	Key  string `json:"key"`
}

// Tokens are the join tokens. It is safe for concurrent use; what is used up is
// decided by the store, so that of many at once no more than allowed succeed.
type Tokens struct {
	records Records
	clock   *Clock
	caHash  string
}

// OpenTokens returns the tokens in records, for the authority with this hash.
// The time is never before the creation of the newest token: a server that
// reboots without a clock revives none.
func OpenTokens(records Records, clock *Clock, caHash string) (*Tokens, error) {
	t := &Tokens{records: records, clock: clock, caHash: caHash}
	all, err := t.list()
	if err != nil {
		return nil, err
	}
	newest := clock.Now()
	for _, entry := range all {
		if entry.Created.After(newest) {
			newest = entry.Created
		}
	}
	t.clock = NewClock(newest)
	return t, nil
}

type tokenEntry struct {
	Record
	token
}

func (t *Tokens) list() ([]tokenEntry, error) {
	records, err := t.records.ListRecords(recordTokens)
	if err != nil {
		return nil, fmt.Errorf("cannot read the join tokens: %w", err)
	}
	all := make([]tokenEntry, len(records))
	for i, r := range records {
		all[i].Record = r
		if err := decodeRecord(r, &all[i].token); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Create makes a token. Zero means the default life (1 h) and one use.
func (t *Tokens) Create(ctx context.Context, life time.Duration, uses int) (text string, expires time.Time, err error) {
	if life == 0 {
		life = defaultTokenLife
	}
	if uses == 0 {
		uses = 1
	}
	if life < 0 || life > maxTokenLife {
		return "", time.Time{}, apierrors.NewBadRequest(fmt.Sprintf("a join token may live from 1 s to %v", maxTokenLife))
	}
	if uses < 0 || uses > maxTokenUses {
		return "", time.Time{}, apierrors.NewBadRequest(fmt.Sprintf("a join token may have 1 to %d uses", maxTokenUses))
	}
	if err := t.prune(ctx); err != nil {
		return "", time.Time{}, err
	}
	now := t.clock.Now()
	id, secret := randomHex(5), randomHex(20)
	entry := token{Hash: hashSecret(secret), Created: now, Expires: now.Add(life), Uses: uses}
	r, err := encodeRecord(id, 0, entry)
	if err != nil {
		return "", time.Time{}, err
	}
	if _, err := t.records.PutRecord(ctx, recordTokens, r); err != nil {
		return "", time.Time{}, fmt.Errorf("cannot store the join token: %w", err)
	}
	return strings.Join([]string{"bramble1", t.caHash, id, secret}, "."), entry.Expires, nil
}

// prune deletes tokens that are long dead, and refuses to let living ones pile up.
func (t *Tokens) prune(ctx context.Context) error {
	all, err := t.list()
	if err != nil {
		return err
	}
	left := len(all)
	for _, entry := range all {
		if t.clock.Now().Before(entry.Expires.Add(keepDeadTokens)) {
			continue
		}
		if err := t.records.DeleteRecord(ctx, recordTokens, entry.Record); err != nil && !errors.Is(err, ErrChanged) {
			return fmt.Errorf("cannot delete an old join token: %w", err)
		}
		left--
	}
	if left >= maxTokens {
		return apierrors.NewForbidden(tokenResource(), "", fmt.Errorf("there are %d join tokens already; wait until some have expired", left))
	}
	return nil
}

// check says, as a StatusError, why the bearer text "ID.SECRET" does not let
// this use happen, without using it up.
func (t *Tokens) check(bearer string, use tokenUse) error {
	_, _, err := t.find(bearer, use)
	return err
}

// made is when the token was made, by the server's Clock.
func (t *Tokens) made(bearer string, use tokenUse) (time.Time, error) {
	entry, _, err := t.find(bearer, use)
	return entry.Created, err
}

// use takes one use from the token. The same node with the same key may repeat
// its use, for an answer that was lost on the way.
func (t *Tokens) use(ctx context.Context, bearer string, use tokenUse) error {
	for {
		entry, repeated, err := t.find(bearer, use)
		if err != nil || repeated {
			return err
		}
		entry.UsedBy = append(entry.UsedBy, use)
		r, err := encodeRecord(entry.Name, entry.Rev, entry.token)
		if err != nil {
			return err
		}
		if _, err = t.records.PutRecord(ctx, recordTokens, r); err == nil {
			return nil
		}
		if !errors.Is(err, ErrChanged) {
			return fmt.Errorf("cannot use the join token: %w", err)
		}
	}
}

func (t *Tokens) find(bearer string, use tokenUse) (entry tokenEntry, repeated bool, err error) {
	id, secret, ok := strings.Cut(bearer, ".")
	if ok = ok && id != ""; ok {
		entry.Record, ok = t.records.GetRecord(recordTokens, id)
	}
	if ok {
		err = decodeRecord(entry.Record, &entry.token)
	}
	if err != nil {
		return entry, false, err
	}
	if !ok || subtle.ConstantTimeCompare([]byte(hashSecret(secret)), []byte(entry.Hash)) != 1 {
		return entry, false, apierrors.NewUnauthorized("the join token is not known here, or was mistyped; " + wayOut)
	}
	if !t.clock.Now().Before(entry.Expires) {
		return entry, false, apierrors.NewUnauthorized(fmt.Sprintf("the join token %s has expired at %s; %s",
			id, entry.Expires.Format(time.RFC3339), wayOut))
	}
	for _, before := range entry.UsedBy {
		if before == use {
			return entry, true, nil
		}
	}
	if len(entry.UsedBy) >= entry.Uses {
		return entry, false, apierrors.NewForbidden(tokenResource(), id, fmt.Errorf("the join token was used already, by node %s; %s",
			entry.UsedBy[len(entry.UsedBy)-1].Node, wayOut))
	}
	return entry, false, nil
}

func tokenResource() schema.GroupResource {
	return schema.GroupResource{Group: api.Group, Resource: "jointokens"}
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func randomHex(bytes int) string {
	raw := make([]byte, bytes)
	_, _ = rand.Read(raw) // never fails (crypto/rand)
	return hex.EncodeToString(raw)
}
