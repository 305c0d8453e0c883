package main

import (
	"slices"

	"bramble.dev/bramble/server/scheduler"
)

// fleet is twelve boards.
type fleet struct {
	name   string
	boards []placed
}

// placed is a board where it is.
type placed struct {
	kind   *kind
	warmer float64 // K that it is there, than elsewhere
	fault  fault
}

func homogeneous() fleet {
	f := fleet{name: "homogeneous"}
	for range 12 {
		f.boards = append(f.boards, placed{kind: &pi4Bare})
	}
	return f
}

// cupboard has one of twelve like boards where air does not move.
func cupboard() fleet {
	f := homogeneous()
	f.name = "one in a cupboard"
	f.boards[4].warmer = 10
	return f
}

func mixed() fleet {
	f := fleet{name: "mixed cooling"}
	for _, k := range []*kind{
		&pi5Passive, &pi5Active, &pi4Bare, &pi4Heatsink, &pi3, &pi3Plus,
		&zero2, &rock5, &pi5Passive, &pi5Active, &pi4Bare, &pi4Heatsink,
	} {
		f.boards = append(f.boards, placed{kind: k})
	}
	return f
}

// faulty is the mixed fleet with a fault of the sensors of its two Pi 4 and the two Pi 5
// that get hottest.
func faulty(name string, of fault) fleet {
	f := mixed()
	f.name = name
	for _, i := range []int{0, 2, 8, 10} {
		f.boards[i].fault = of
	}
	return f
}

// scenarios are all that policies are compared in: three fleets by two temperatures and
// two loads, and four faults.
func scenarios() (all []scenario) {
	for _, f := range []fleet{mixed(), cupboard(), homogeneous()} {
		all = append(all, conditions(f)...)
	}
	for _, f := range []fleet{
		faulty("mixed, 4 sensors lost", lost), faulty("mixed, 4 stuck", stuck),
		faulty("mixed, 4 read 10 K low", reads10Low), faulty("mixed, 4 read 10 K high", reads10High),
	} {
		all = append(all, scenario{f, 24, 0.45}, scenario{f, 32, 0.65})
	}
	return all
}

// conditions are two temperatures by two loads.
func conditions(f fleet) (all []scenario) {
	for _, ambient := range []float64{24, 32} {
		for _, load := range []float64{0.45, 0.65} {
			all = append(all, scenario{f, ambient, load})
		}
	}
	return all
}

// policies are what is compared: Bramble's scheduler as it is, and without what it knows
// of boards.
func policies() []policy { return []policy{blind, filter, ours} }

var (
	blind = policy{"blind", func(pick func(int) int) scheduler.Profile {
		p := scheduler.Default(pick)
		p.Soft = nil
		p.Scores = slices.DeleteFunc(p.Scores, func(w scheduler.Weighted) bool { return ofBoards(w.Score) })
		return p
	}}
	filter = policy{"filter", func(pick func(int) int) scheduler.Profile {
		p := blind.profile(pick)
		p.Soft = []scheduler.Filter{scheduler.CalmBoard{}}
		return p
	}}
	ours = policy{"ours", scheduler.Default}
)

// weighing is ours with another weight of the score Thermal.
func weighing(weight int64) policy {
	return policy{"ours", func(pick func(int) int) scheduler.Profile {
		p := scheduler.Default(pick)
		for i := range p.Scores {
			if p.Scores[i].Name() == scheduler.Thermal.Name() {
				p.Scores[i].Weight = weight
			}
		}
		return p
	}}
}

func ofBoards(s scheduler.Score) bool {
	_, yes := s.(scheduler.BoardScore)
	return yes
}
