package hw

import (
	"fmt"
	"slices"
	"strings"
)

// listAudio lists the cards of ALSA. The name that stays is the card's identity, as
// in "hw:CARD=Headphones".
func listAudio(r *reader) []Device {
	data, err := r.once("proc/asound/cards")
	if err != nil {
		return nil
	}
	var found []Device
	for _, c := range parseCards(data) {
		d := r.device(Audio, fmt.Sprintf("card%d", c.number), fmt.Sprintf("snd/controlC%d", c.number))
		d.Stable, d.Label = clean(c.id), clean(c.name)
		d.More = r.cardNodes(c.number)
		r.describe(&d, "sys/class/sound", fmt.Sprintf("card%d", c.number), "device")
		found = append(found, d)
	}
	return found
}

// cardNodes are the nodes of a card beside its control: "pcmC0D0p", "midiC0D0".
func (r *reader) cardNodes(number int64) []string {
	var nodes []string
	for _, name := range r.names("dev/snd") {
		kind, device, ok := strings.Cut(name, fmt.Sprintf("C%dD", number))
		if ok && device != "" && slices.Contains([]string{"pcm", "midi", "hw", "compr"}, kind) {
			nodes = append(nodes, clean("/dev/snd/"+name))
		}
	}
	return nodes
}

type card struct {
	number   int64
	id, name string
}

// parseCards reads /proc/asound/cards, of each card the first of its two lines:
//
//	0 [Headphones     ]: bcm2835_headpho - bcm2835 Headphones
//
// Without cards it is "--- no soundcards ---".
func parseCards(data string) []card {
	var cards []card
	for line := range strings.Lines(data) {
		number, rest, ok := strings.Cut(line, " [")
		n, err := parseInt([]byte(number))
		if !ok || err != nil || n < 0 || n > 255 {
			continue
		}
		id, rest, ok := strings.Cut(rest, "]: ")
		if !ok {
			continue
		}
		if _, name, ok := strings.Cut(rest, " - "); ok {
			rest = name
		}
		cards = append(cards, card{number: n, id: strings.TrimSpace(id), name: strings.TrimSpace(rest)})
	}
	return cards
}
