/**
 * Tests that the agent does not read a whole command line of gigabytes. A process of a local user can have such a
 * command line without using memory.
 */
import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { Attacker, attackAsNobody, startNode, useCluster } from './rig.ts';

useCluster();

const BYTES = 2 ** 30;
/** Numbers of mmap(2) and prctl(2). */
const CALLS = process.arch === 'arm64' ? [222, 167] : [9, 157];
/** With PR_SET_MM_MAP of prctl(2), every process may set the memory address of its command line. */
const PROGRAM = `
use strict;
open(my $stat, '<', '/proc/self/stat') or die;
my @stat = split ' ', substr(join('', <$stat>) =~ s/.*\\)//sr, 1);
my ($bytes, $mmap, $prctl) = @ARGV;
my $at = syscall($mmap, 0, 0 + $bytes, 1, 0x4022, -1, 0);
my @code = @stat[23, 24, 42, 43, 44, 44, 25];
my $map = pack('Q11 Q L L', @code, $at, $at + $bytes, @stat[47, 48], 0, 0, 0xffffffff);
syscall($prctl, 35, 14, $map, length($map), 0) == 0 or die "prctl: $!";
$| = 1;
print "up\\n";
sleep 600;
`;

async function peakMiB(pid: number): Promise<number> {
  return (
    Number(/VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  );
}

attackAsNobody('the agent never reads what a foreign process says of itself', async () => {
  await using attacker = await Attacker.arrive();
  await using node = await startNode();
  await attacker.run('perl', '-e', PROGRAM, String(BYTES), ...CALLS.map(String));
  const agent = node.startAgent();
  await node.announced();
  expect(await peakMiB(agent.pid)).toBeLessThan(500);
});
