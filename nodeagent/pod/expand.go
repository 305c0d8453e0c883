package pod

import "strings"

// Expand replaces $(NAME) in s by lookup, as Kubernetes does in commands,
// arguments and environments: $$ stands for a dollar sign, and a reference that
// lookup does not know is left as it is.
func Expand(s string, lookup func(name string) (string, bool)) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case '$':
			out.WriteByte('$')
		case '(':
			end := strings.IndexByte(s[i:], ')')
			if end < 0 {
				out.WriteString("$(")
				continue
			}
			name := s[i+1 : i+end]
			if value, ok := lookup(name); ok {
				out.WriteString(value)
			} else {
				out.WriteString("$(" + name + ")")
			}
			i += end
		default:
			out.WriteByte('$')
			out.WriteByte(s[i])
		}
	}
	return out.String()
}
