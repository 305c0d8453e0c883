package hw_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bramble.dev/bramble/hw"
)

// TestDevices lists each class. Paths and values of the Raspberry Pi 3 are of QEMU
// with Linux 6.12; those of other boards are as the kernel's documents and drivers
// have them.
func TestDevices(t *testing.T) {
	const soc = "sys/devices/platform/soc/"
	const usb1 = soc + "3f980000.usb/usb1/"
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []hw.Device
	}{
		{name: "nothing"},
		{
			name: "gpio of a Raspberry Pi 3",
			files: map[string]string{
				"sys/bus/gpio/devices/gpiochip0":                                    "-> ../../../devices/platform/soc/3f200000.gpio/gpiochip0",
				"sys/bus/gpio/devices/gpiochip1":                                    "-> ../../../devices/platform/soc/soc:firmware/soc:firmware:gpio/gpiochip1",
				soc + "3f200000.gpio/gpiochip0/dev":                                 "254:0\n",
				soc + "3f200000.gpio/gpio/gpiochip512/label":                        "pinctrl-bcm2835\n",
				soc + "soc:firmware/soc:firmware:gpio/gpiochip1/dev":                "254:1\n",
				soc + "soc:firmware/soc:firmware:gpio/gpio/gpiochip566/label":       "raspberrypi-exp-gpio\n",
				soc + "soc:firmware/soc:firmware:gpio/gpiochip1/of_node/compatible": "raspberrypi,firmware-gpio\x00",
				"dev/gpiochip0": "", "dev/gpiochip1": "", "dev/gpiochip4": "-> gpiochip0",
			},
			want: []hw.Device{
				{Class: hw.GPIO, Name: "gpiochip0", Path: "/dev/gpiochip0", Label: "pinctrl-bcm2835", Bus: "3f200000.gpio"},
				{Class: hw.GPIO, Name: "gpiochip1", Path: "/dev/gpiochip1", Label: "raspberrypi-exp-gpio", Bus: "soc:firmware:gpio"},
			},
		},
		{
			name: "two chips of one device, as of the BCM2712",
			files: map[string]string{
				"sys/bus/gpio/devices/gpiochip10":                     "-> ../../../devices/platform/soc/107d508500.gpio/gpiochip10",
				"sys/bus/gpio/devices/gpiochip11":                     "-> ../../../devices/platform/soc/107d508500.gpio/gpiochip11",
				soc + "107d508500.gpio/gpiochip10/dev":                "254:10\n",
				soc + "107d508500.gpio/gpiochip11/dev":                "254:11\n",
				soc + "107d508500.gpio/gpio/gpiochip512/label":        "one\n",
				soc + "107d508500.gpio/gpio/gpiochip544/label":        "other\n",
				soc + "107d508500.gpio/gpiochip10/of_node/compatible": "brcm,bcm7445-gpio\x00brcm,brcmstb-gpio\x00",
			},
			want: []hw.Device{
				{Class: hw.GPIO, Name: "gpiochip10", Label: "brcm,bcm7445-gpio", Bus: "107d508500.gpio"},
				{Class: hw.GPIO, Name: "gpiochip11", Bus: "107d508500.gpio"},
			},
		},
		{
			name: "i2c",
			files: map[string]string{
				"sys/bus/i2c/devices/i2c-1":            "-> ../../../devices/platform/soc/3f804000.i2c/i2c-1",
				"sys/bus/i2c/devices/1-0068":           "-> ../../../devices/platform/soc/3f804000.i2c/i2c-1/1-0068",
				soc + "3f804000.i2c/i2c-1/name":        "bcm2835 (i2c@7e804000)\n",
				soc + "3f804000.i2c/i2c-1/1-0068/name": "ds1307\n",
				"sys/bus/i2c/devices/10-0011/name":     "other\n",
				"dev/i2c-1":                            "",
			},
			want: []hw.Device{{Class: hw.I2C, Name: "i2c-1", Path: "/dev/i2c-1", Label: "bcm2835 (i2c@7e804000)", Bus: "3f804000.i2c", Parts: []string{"0068 ds1307"}}},
		},
		{
			name: "spi",
			files: map[string]string{
				"sys/class/spidev/spidev0.0":                                        "-> ../../devices/platform/soc/3f204000.spi/spi_master/spi0/spi0.0/spidev/spidev0.0",
				soc + "3f204000.spi/spi_master/spi0/spi0.0/spidev/spidev0.0/dev":    "153:0\n",
				soc + "3f204000.spi/spi_master/spi0/spi0.0/spidev/spidev0.0/device": "-> ../../../spi0.0",
				soc + "3f204000.spi/spi_master/spi0/spi0.0/modalias":                "spi:spidev\n",
				"dev/spidev0.0": "",
			},
			want: []hw.Device{{Class: hw.SPI, Name: "spidev0.0", Path: "/dev/spidev0.0", Label: "spidev", Bus: "spi0.0"}},
		},
		{
			name: "serial",
			files: map[string]string{
				"sys/class/tty/tty1/dev": "4:1\n", // a console
				"sys/class/tty/ttyS0":    "-> ../../devices/platform/serial8250/serial8250:0/serial8250:0.0/tty/ttyS0",
				"sys/devices/platform/serial8250/serial8250:0/serial8250:0.0/tty/ttyS0/type":   "0\n",
				"sys/devices/platform/serial8250/serial8250:0/serial8250:0.0/tty/ttyS0/device": "-> ../../../serial8250:0.0",
				"sys/class/tty/ttyS2": "-> ../../devices/platform/serial8250/serial8250:0/serial8250:0.2/tty/ttyS2",
				"sys/devices/platform/serial8250/serial8250:0/serial8250:0.2/tty/ttyS2/dev":    "4:66\n", // its type is not for us
				"sys/devices/platform/serial8250/serial8250:0/serial8250:0.2/tty/ttyS2/device": "-> ../../../serial8250:0.2",
				"sys/class/tty/ttyS1": "-> ../../devices/platform/soc/3f215040.serial/3f215040.serial:0/3f215040.serial:0.0/tty/ttyS1",
				soc + "3f215040.serial/3f215040.serial:0/3f215040.serial:0.0/tty/ttyS1/type":   "3\n",
				soc + "3f215040.serial/3f215040.serial:0/3f215040.serial:0.0/tty/ttyS1/device": "-> ../../../3f215040.serial:0.0",
				"dev/ttyS1": "", "dev/serial0": "-> ttyS1",
				"sys/class/tty/ttyUSB0":                                 "-> ../../devices/platform/soc/3f980000.usb/usb1/1-1/1-1.2/1-1.2:1.0/ttyUSB0/tty/ttyUSB0",
				usb1 + "1-1/1-1.2/1-1.2:1.0/ttyUSB0/tty/ttyUSB0/device": "-> ../../../ttyUSB0",
				usb1 + "1-1/1-1.2/idVendor":                             "10c4\n", usb1 + "1-1/1-1.2/idProduct": "ea60\n",
				usb1 + "1-1/1-1.2/product": "CP2102 USB to UART Bridge Controller\n", usb1 + "idVendor": "1d6b\n",
				"dev/ttyUSB0": "",
				"dev/serial/by-id/usb-Silicon_Labs_CP2102_0001-if00-port0":     "-> ../../ttyUSB0",
				"dev/serial/by-path/platform-3f980000.usb-usb-0:1.2:1.0-port0": "-> ../../ttyUSB0",
			},
			want: []hw.Device{
				{Class: hw.Serial, Name: "ttyS1", Path: "/dev/ttyS1", Stable: "/dev/serial0", Bus: "3f215040.serial:0.0"},
				{Class: hw.Serial, Name: "ttyUSB0", Path: "/dev/ttyUSB0", Label: "CP2102 USB to UART Bridge Controller", Bus: "ttyUSB0",
					Stable: "/dev/serial/by-id/usb-Silicon_Labs_CP2102_0001-if00-port0", Vendor: "10c4", Product: "ea60"},
			},
		},
		{
			name: "usb, with bytes that are no text, and an Edge TPU",
			files: map[string]string{
				"sys/bus/usb/devices/usb1/idVendor": "1d6b\n", "sys/bus/usb/devices/usb1/idProduct": "0002\n",
				"sys/bus/usb/devices/usb1/product": "DWC OTG Controller\n", "sys/bus/usb/devices/usb1/serial": "3f980000.usb\n",
				"sys/bus/usb/devices/usb1/manufacturer": "Linux 6.12.117+deb13-arm64 dwc2_hsotg\n", "sys/bus/usb/devices/usb1/speed": "480\n",
				"sys/bus/usb/devices/usb1/bDeviceClass": "09\n", "sys/bus/usb/devices/usb1/busnum": "1\n", "sys/bus/usb/devices/usb1/devnum": "1\n",
				"dev/bus/usb/001/001":              "",
				"sys/bus/usb/devices/1-1/idVendor": "1A6E\n", "sys/bus/usb/devices/1-1/idProduct": "089a\n",
				"sys/bus/usb/devices/1-2/idVendor":            "12345\n",
				"sys/bus/usb/devices/1-2/product":             "bad\xff\x1b[31m\u202e" + strings.Repeat("ä", 100) + "\n",
				"sys/bus/usb/devices/1-1:1.0/bInterfaceClass": "ff\n",
			},
			want: []hw.Device{
				{Class: hw.NPU, Name: "1-1", Label: "Coral USB Accelerator", Vendor: "1a6e", Product: "089a", Bus: "1"},
				{Class: hw.USB, Name: "1-1", Vendor: "1a6e", Product: "089a", Bus: "1"},
				{Class: hw.USB, Name: "1-2", Label: "bad\uFFFD[31m" + strings.Repeat("ä", 58), Bus: "1"},
				{Class: hw.USB, Name: "usb1", Path: "/dev/bus/usb/001/001", Label: "Linux 6.12.117+deb13-arm64 dwc2_hsotg DWC OTG Controller",
					Stable: "1d6b:0002:3f980000.usb", Vendor: "1d6b", Product: "0002", Type: "09", Speed: "480", Bus: "usb1"},
			},
		},
		{
			name: "cameras among what a Raspberry Pi lists",
			files: map[string]string{
				"sys/class/video4linux/video10/name": "bcm2835-codec-decode\n", "sys/class/video4linux/video14/name": "bcm2835-isp-capture0\n",
				"sys/class/video4linux/video19/name": "rpivid\n", "sys/class/video4linux/video20/name": "pispbe-output0\n",
				"sys/class/video4linux/video0/name": "unicam-image\n", "sys/class/video4linux/video9/name": "unicam-embedded\n",
				"sys/class/video4linux/video2/name": "rp1-cfe-csi2_ch0\n", "sys/class/video4linux/video3/name": "rp1-cfe-fe_image0\n",
				"sys/class/video4linux/v4l-subdev0/name":     "imx708\n",
				"sys/class/video4linux/video4":               "-> ../../devices/platform/soc/3f980000.usb/usb1/1-1/1-1:1.0/video4linux/video4",
				"sys/class/video4linux/video5":               "-> ../../devices/platform/soc/3f980000.usb/usb1/1-1/1-1:1.0/video4linux/video5",
				usb1 + "1-1/1-1:1.0/video4linux/video4/name": "HD Pro Webcam C920\n", usb1 + "1-1/1-1:1.0/video4linux/video5/name": "HD Pro Webcam C920\n",
				usb1 + "1-1/1-1:1.0/video4linux/video4/index": "0\n", usb1 + "1-1/1-1:1.0/video4linux/video5/index": "1\n",
				"sys/class/video4linux/video6/name": "Cam\n", "sys/class/video4linux/video6/dev": "81:6\n",
				"run/udev/data/c81:6":               "I:1\nE:ID_V4L_CAPABILITIES=:capture:\n",
				"sys/class/video4linux/video7/name": "Cam\n", "sys/class/video4linux/video7/dev": "81:7\n",
				"run/udev/data/c81:7": "E:ID_V4L_CAPABILITIES=:\n",
				"dev/video6":          "", "dev/v4l/by-id/usb-Cam-video-index0": "-> ../../video6",
			},
			want: []hw.Device{
				{Class: hw.Camera, Name: "video0", Label: "unicam-image"},
				{Class: hw.Camera, Name: "video2", Label: "rp1-cfe-csi2_ch0"},
				{Class: hw.Camera, Name: "video4", Label: "HD Pro Webcam C920"},
				{Class: hw.Camera, Name: "video6", Path: "/dev/video6", Label: "Cam", Stable: "/dev/v4l/by-id/usb-Cam-video-index0"},
				{Class: hw.Video, Name: "video10", Label: "bcm2835-codec-decode"},
				{Class: hw.Video, Name: "video19", Label: "rpivid"},
			},
		},
		{
			name: "the sensor and the lens of a camera, as a Raspberry Pi 5 has them",
			files: map[string]string{
				"sys/class/video4linux/video0/name":         "rp1-cfe-csi2_ch0\n",
				"sys/class/video4linux/video0/device":       "-> ../../../devices/platform/axi/1f00128000.csi",
				"sys/class/video4linux/v4l-subdev0/name":    "imx519 10-001a\n",
				"sys/class/video4linux/v4l-subdev0/device":  "-> ../../../devices/platform/axi/1f00128000.csi",
				"sys/class/video4linux/v4l-subdev1/name":    "csi2\n",
				"sys/class/video4linux/v4l-subdev1/device":  "-> ../../../devices/platform/axi/1f00128000.csi",
				"sys/class/video4linux/v4l-subdev3/name":    "ak7375 10-000c\n",
				"sys/class/video4linux/v4l-subdev3/device":  "-> ../../../devices/platform/axi/1f00128000.csi",
				"sys/class/video4linux/v4l-subdev4/name":    "imx708 11-001a\n",
				"sys/class/video4linux/v4l-subdev4/device":  "-> ../../../devices/platform/axi/1f00110000.csi",
				"sys/devices/platform/axi/1f00128000.csi/x": "", "sys/devices/platform/axi/1f00110000.csi/x": "",
			},
			want: []hw.Device{{Class: hw.Camera, Name: "video0", Label: "rp1-cfe-csi2_ch0", Bus: "1f00128000.csi", Parts: []string{"imx519 10-001a", "ak7375 10-000c"}}},
		},
		{
			name: "audio",
			files: map[string]string{
				"proc/asound/cards": " 0 [Headphones     ]: bcm2835_headpho - bcm2835 Headphones\n                      bcm2835 Headphones\n" +
					" 1 [vc4hdmi0       ]: vc4-hdmi - vc4-hdmi-0\n                      vc4-hdmi-0\n",
				"dev/snd/controlC0": "", "dev/snd/pcmC0D0p": "", "dev/snd/pcmC10D0p": "", "dev/snd/midiC0D1": "", "dev/snd/timer": "",
			},
			want: []hw.Device{
				{Class: hw.Audio, Name: "card0", Path: "/dev/snd/controlC0", More: []string{"/dev/snd/midiC0D1", "/dev/snd/pcmC0D0p"}, Label: "bcm2835 Headphones", Stable: "Headphones"},
				{Class: hw.Audio, Name: "card1", Label: "vc4-hdmi-0", Stable: "vc4hdmi0"},
			},
		},
		{name: "no sound", files: map[string]string{"proc/asound/cards": "--- no soundcards ---\n"}},
		{
			name: "iio and bluetooth",
			files: map[string]string{
				"sys/bus/iio/devices/iio:device0/name": "ads1015\n", "sys/bus/iio/devices/trigger0/name": "t\n", "dev/iio:device0": "",
				"sys/class/bluetooth/hci0/type": "primary\n", "sys/class/bluetooth/hci0:11/x": "",
			},
			want: []hw.Device{
				{Class: hw.Bluetooth, Name: "hci0"},
				{Class: hw.IIO, Name: "iio:device0", Path: "/dev/iio:device0", Label: "ads1015", Bus: "devices"},
			},
		},
		{
			name: "what computes neural networks",
			files: map[string]string{
				"sys/class/hailo_chardev/hailo0": "-> ../../devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/hailo_chardev/hailo0",
				"sys/devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/hailo_chardev/hailo0/device": "-> ../../../0000:01:00.0",
				"sys/devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/vendor":                      "0x1e60\n",
				"sys/devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/device":                      "0x2864\n",
				"sys/devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/subsystem":                   "-> /sys/bus/pci",
				"sys/devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/driver":                      "-> /sys/bus/pci/drivers/hailo",
				"dev/hailo0":                             "",
				"sys/class/drm/renderD129/device/driver": "-> ../../../../bus/platform/drivers/RKNPU", "dev/dri/renderD129": "",
				"sys/class/drm/renderD128/device/driver": "-> ../../../../bus/platform/drivers/panfrost", "dev/dri/renderD128": "",
				"sys/class/accel/accel0/device/driver": "-> ../../../../bus/platform/drivers/rocket", "dev/accel/accel0": "",
				"sys/class/apex/apex_0/dev": "120:0\n", "dev/apex_0": "",
				"dev/nvhost-gpu": "", "dev/nvmap": "",
			},
			want: []hw.Device{
				{Class: hw.DRI, Name: "renderD128", Path: "/dev/dri/renderD128", Label: "panfrost", Bus: "device"},
				{Class: hw.NPU, Name: "hailo0", Path: "/dev/hailo0", Label: "hailo", Bus: "0000:01:00.0", Vendor: "1e60", Product: "2864"},
				{Class: hw.NPU, Name: "apex_0", Path: "/dev/apex_0"},
				{Class: hw.NPU, Name: "accel0", Path: "/dev/accel/accel0", Label: "rocket", Bus: "device"},
				{Class: hw.NPU, Name: "renderD129", Path: "/dev/dri/renderD129", Label: "RKNPU", Bus: "device"},
				{Class: hw.NPU, Name: "nvhost-gpu", Path: "/dev/nvhost-gpu", Label: "tegra"},
				{Class: hw.NPU, Name: "nvmap", Path: "/dev/nvmap", Label: "tegra"},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			board := hw.Open(hw.Config{Root: newTree(t, test.files)})
			defer board.Close()
			got := board.Sample(t.Context()).Devices
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(hw.Device{}, "Access"), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			for _, d := range got {
				if d.Access.OK() {
					t.Errorf("%s: a file of another root passes for a device: %+v", d.Name, d.Access)
				}
			}
		})
	}
}

// TestDevicesComeAndGo scans again.
func TestDevicesComeAndGo(t *testing.T) {
	root := newTree(t, map[string]string{"sys/class/spidev/spidev0.0/dev": "153:0\n", "proc/asound/cards": " 0 [a]: b - c\n"})
	board := hw.Open(hw.Config{Root: root})
	defer board.Close()
	names := func() (names []string) {
		for _, d := range board.Sample(t.Context()).Devices {
			names = append(names, d.Name)
		}
		return names
	}
	if got := names(); !cmp.Equal(got, []string{"card0", "spidev0.0"}) {
		t.Errorf("at first %v", got)
	}
	if err := os.RemoveAll(filepath.Join(root, "sys/class/spidev")); err != nil {
		t.Fatal(err)
	}
	board.Rescan()
	if got := names(); !cmp.Equal(got, []string{"card0"}) {
		t.Errorf("then %v", got)
	}
}
