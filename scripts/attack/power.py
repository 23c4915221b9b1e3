"""Power losses: a file system of its own is shut down without its log while the run writes to it."""

import fcntl
import os
import shutil
import struct
import subprocess

import result
import tiny_run
from attack import Attack
from place import Loss, Skipped

# The program that makes the file system, its smallest size in MiB, and the ioctl that shuts it down:
# EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN, _IOR('X', 125, __u32), here with "no flush of the log".
MAKE = {"ext4": (["mkfs.ext4", "-q", "-F"], 64), "xfs": (["mkfs.xfs", "-q", "-f"], 320)}
SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, 2


def call(*words):
    """Skipped where the command is not there or is not permitted."""
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except OSError as reason:
        raise Skipped(f"{words[0]}: {reason.strerror}") from reason
    except subprocess.CalledProcessError as reason:
        raise Skipped(f"{words[0]}: {reason.stderr.strip() or reason.returncode}") from reason


class Power(Attack):
    name = "power"
    settings = {"ext4": (12, 200), "xfs": (12, 200)}
    notices = ("other_bits", "lost_line", "left_behind", "torn", "wrong_code")
    mounted = False

    def prepare(self):
        if os.geteuid() != 0:
            raise Skipped("only root may mount a file system and shut it down")
        make, size = MAKE[self.setting]
        if not shutil.which(make[0]):
            raise Skipped(f"there is no {make[0]}")
        place = self.place
        self.image, self.disk = place.folder / "disk.img", place.folder / "disk"
        with self.image.open("wb") as image:
            image.truncate(size << 20)
        call(*make, str(self.image))
        self.disk.mkdir()
        self.mount()
        place.out = self.disk / "out"
        place.write(tiny_run.plain(place.name_of_out()))
        place.run_undisturbed()
        self.shut_down()
        self.unmount()
        self.mount()

    def mount(self):
        call("mount", "-o", "loop", str(self.image), str(self.disk))
        self.mounted = True

    def unmount(self):
        call("umount", str(self.disk))
        self.mounted = False

    def close(self):
        if self.mounted:
            self.unmount()

    def shut_down(self):
        """What is not on the disk is lost, and nothing can be read or written any more."""
        descriptor = os.open(self.disk, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        except OSError as reason:
            raise Skipped(f"the file system cannot be shut down: {reason.strerror}") from reason
        finally:
            os.close(descriptor)

    def put_on_disk(self):
        """That the run before was removed is not to be lost."""
        descriptor = os.open(self.disk, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(descriptor)
        os.close(descriptor)

    def attempt(self, number):
        place, choose = self.place, self.random(number)
        place.clear()
        self.put_on_disk()
        process = place.start()
        process.wait(choose.uniform(0, place.seconds))
        # A save returned where a later step has been logged: it has to last. Asked in this order: what
        # is saved meanwhile is not counted on.
        saved = result.newest_step(place.out)
        promised = saved if result.logged_step(place.out) > saved else 0
        self.shut_down()
        ended = process.end()
        self.unmount()
        self.mount()
        ended = place.take(ended)
        if ended.code not in (0, 6):
            raise Loss(f"the file system was lost, and it ended with {ended.code}")
        if ended.code == 0:
            self.note("ended before")
        else:
            place.check_checkpoints()
            if result.newest_step(place.out) < promised:
                raise Loss(f"the checkpoint of step {promised} was saved before the loss and is gone")
        place.finish()
        return 1
