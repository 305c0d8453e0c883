package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Boot is the kernel's command line, and the file that it is made of.
type Boot struct {
	Words []string // of /proc/cmdline
	File  string   // that has it at the next boot; "" if none is known
	Next  string   // what is in the file
}

// bootFiles have the kernel's command line: of Raspberry Pi OS and Ubuntu on a Pi since
// 2023, before that, of Armbian, of boards with U-Boot's menu, and of PCs.
var bootFiles = []string{"boot/firmware/cmdline.txt", "boot/cmdline.txt", "boot/armbianEnv.txt", "boot/extlinux/extlinux.conf", "etc/default/grub"}

func (p Place) lookBoot() Boot {
	data, _ := os.ReadFile(p.board("proc/cmdline"))
	b := Boot{Words: strings.Fields(string(data))}
	for _, file := range bootFiles {
		if next, err := os.ReadFile(p.board(file)); err == nil {
			b.File, b.Next = "/"+file, string(next)
			break
		}
	}
	return b
}

// lacks returns which of the words are not on the command line.
func (b Boot) lacks(words ...string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(b.Words, word) })
}

// add is the line that puts words on the command line of the next boot.
func (b Boot) add(words ...string) string {
	next := strings.Fields(b.Next)
	words = slices.DeleteFunc(words, func(word string) bool { return filepath.Base(b.File) == "cmdline.txt" && slices.Contains(next, word) })
	if len(words) == 0 {
		return "sudo reboot   # " + b.File + " has it already"
	}
	text := strings.Join(words, " ")
	switch filepath.Base(b.File) {
	case "cmdline.txt":
		return "sudo sed -i '1s/$/ " + text + "/' " + b.File + " && sudo reboot"
	case "armbianEnv.txt":
		if strings.Contains(b.Next, "extraargs=") {
			return "sudo sed -i '/^extraargs=/s/$/ " + text + "/' " + b.File + " && sudo reboot"
		}
		return "echo 'extraargs=" + text + "' | sudo tee -a " + b.File + " && sudo reboot"
	case "extlinux.conf":
		return `sudo sed -i -E '/^\s*append\s/Is/$/ ` + text + "/' " + b.File + " && sudo reboot"
	case "grub":
		return `echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ` + text + `"' | sudo tee -a ` + b.File + " && sudo update-grub && sudo reboot"
	}
	return "add to the kernel's command line, where the boot loader has it: " + text
}
