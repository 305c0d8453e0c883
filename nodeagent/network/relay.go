package network

import (
	"context"
	"log/slog"
	"net/netip"
)

type relay struct{}

func newRelay(string, *slog.Logger) *relay   { return &relay{} }
func (*relay) serve(string, netip.Addr)      {}
func (*relay) run(ctx context.Context) error { <-ctx.Done(); return nil }
