package store

import (
	"fmt"
	"time"
)

// Unseal is unseal, for the fuzz test.
var Unseal = unseal

// LimitPages makes the disk full when the file has n more pages than now.
func (s *Store) LimitPages(n int) error {
	var pages int
	if err := s.db.conn.QueryRowContext(s.db.ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		return err
	}
	return s.db.exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+n))
}

// LogBytes returns how much of the log is not in the file yet.
func (s *Store) LogBytes() (int64, error) { return s.db.checkpoint("NOOP") }

// Seal is seal, for tests.
var Seal = seal

// Reach is what the writer does before it publishes rev.
func (s *Store) Reach(rev uint64) error { return s.db.reach(rev) }

// ForgetTrial makes the next trial due.
func (s *Store) ForgetTrial() {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.tried = time.Time{}
}

// Pack returns a Body as the store keeps it.
func Pack(plain []byte) *Body {
	b := NewBody(plain)
	b.pack()
	return b
}

// Unpack decompresses b, which is compressed.
func (b *Body) Unpack() []byte { return b.unpack() }
