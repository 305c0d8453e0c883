package hw

import (
	"strings"
	"unicode"
)

// identifier is a number of USB or PCI as four digits in base 16, or "".
func identifier(s string) string {
	s = strings.ToLower(strings.TrimPrefix(s, "0x"))
	if n, err := parseHex([]byte(s)); err != nil || len(s) != 4 || n > 0xffff {
		return ""
	}
	return s
}

// maxText is the most that is kept of what a device says, in bytes.
const maxText = 128

// clean is what a device says as one line of text.
func clean(s string) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return strings.TrimSpace(s)
}
