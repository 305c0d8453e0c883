package hw

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// parseInt reads a whole number in base 10, with nothing beside it but space. It
// allocates nothing.
func parseInt(data []byte) (int64, error) {
	data = trim(data)
	negative := len(data) > 0 && data[0] == '-'
	if negative {
		data = data[1:]
	}
	n, err := parseUint(data, 10)
	if err != nil || n > 1<<63-1 {
		return 0, ErrFormat
	}
	if negative {
		return -int64(n), nil
	}
	return int64(n), nil
}

// parseHex reads a number in base 16, with or without "0x" before it.
func parseHex(data []byte) (uint64, error) {
	data = trim(data)
	if len(data) > 2 && data[0] == '0' && (data[1] == 'x' || data[1] == 'X') {
		data = data[2:]
	}
	return parseUint(data, 16)
}

func parseUint(digits []byte, base uint64) (uint64, error) {
	if len(digits) == 0 {
		return 0, ErrFormat
	}
	var n uint64
	for _, c := range digits {
		var d uint64
		switch {
		case c >= '0' && c <= '9':
			d = uint64(c - '0')
		case c >= 'a' && c <= 'f':
			d = uint64(c-'a') + 10
		case c >= 'A' && c <= 'F':
			d = uint64(c-'A') + 10
		default:
			return 0, ErrFormat
		}
		if d >= base || n > (1<<64-1-d)/base {
			return 0, ErrFormat
		}
		n = n*base + d
	}
	return n, nil
}

// parseFixed reads a number with digits after its point as a whole number of
// 10^-places: "0.68" with 2 places is 68. More digits are cut off.
func parseFixed(data []byte, places int) (int64, error) {
	data = trim(data)
	negative := len(data) > 0 && data[0] == '-'
	if negative {
		data = data[1:]
	}
	whole, fraction, _ := bytes.Cut(data, []byte{'.'})
	var n int64
	if len(whole) > 0 || len(fraction) == 0 {
		u, err := parseUint(whole, 10)
		if err != nil || u > 1<<40 {
			return 0, ErrFormat
		}
		n = int64(u)
	}
	for i := range places {
		n *= 10
		if i < len(fraction) {
			n += int64(fraction[i] - '0')
		}
	}
	for _, c := range fraction {
		if c < '0' || c > '9' {
			return 0, ErrFormat
		}
	}
	if negative {
		n = -n
	}
	return n, nil
}

// trim cuts space, line ends and NULs, which the device tree ends texts with, off
// both ends.
func trim(data []byte) []byte {
	blank := func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }
	for len(data) > 0 && blank(data[0]) {
		data = data[1:]
	}
	for len(data) > 0 && blank(data[len(data)-1]) {
		data = data[:len(data)-1]
	}
	return data
}

// field cuts the next word off a line; it is empty at the end.
func field(line []byte) (word, rest []byte) {
	line = trim(line)
	for i, c := range line {
		if c == ' ' || c == '\t' {
			return line[:i], line[i+1:]
		}
	}
	return line, nil
}

// nextLine cuts the next line off data.
func nextLine(data []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(data, []byte{'\n'})
	return line, rest
}

// sortNatural sorts by the numbers in names as numbers.
func sortNatural(names []string) {
	slices.SortFunc(names, func(a, b string) int {
		x, n := splitNumber(a)
		y, m := splitNumber(b)
		if x == y && n != m {
			return cmp.Compare(n, m)
		}
		return strings.Compare(a, b)
	})
}

// splitNumber cuts the number off a name's end; it is -1 if there is none.
func splitNumber(name string) (prefix string, n int64) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	n, err := parseInt([]byte(name[i:]))
	if err != nil {
		return name, -1
	}
	return name[:i], n
}
