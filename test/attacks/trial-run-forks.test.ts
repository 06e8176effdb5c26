/**
 * Tests that a trial run ends a program that forks and exits all the time. A list of processes never contained such a
 * program, so the program could continue after its trial run.
 */
import { expect, vi } from 'vitest';
import { attackAsNobody, reasonAfter, useCluster } from './rig.ts';

useCluster();

/**
 * Returns `while (fork() <= 0) {} _exit(0)` for x86-64, as an ELF file with one segment. Programs in other languages
 * fork too slowly to escape.
 */
function comet(): Buffer {
  const code = Buffer.from('b8390000000f0585c074f578f3b83c00000031ff0f05', 'hex');
  const start = 0x400000n;
  const size = 120 + code.length;
  const file = Buffer.alloc(size);
  file.write('7f454c46020101', 'hex');
  for (const [at, value] of [
    [16, 2],
    [18, 62],
    [20, 1],
    [52, 64],
    [54, 56],
    [56, 1],
    [64, 1],
    [68, 5],
  ] as const)
    file.writeUInt16LE(value, at);
  for (const [at, value] of [
    [24, start + 120n],
    [32, 64n],
    [80, start],
    [88, start],
    [96, size],
    [104, size],
    [112, 4096],
  ] as const)
    file.writeBigUInt64LE(BigInt(value), at);
  code.copy(file, 120);
  return file;
}

/** Returns the output of the script, which can run `$DIRECTORY/comet`. */
async function printedBy(script: string): Promise<string> {
  const programs = { comet: comet() };
  const reason = await reasonAfter((directory) => `DIRECTORY=${directory}\n${script}`, {
    programs,
  });
  return /"(.*)"/.exec(reason)?.[1] ?? '';
}

attackAsNobody('it is ended with all that it starts', async () => {
  // setsid starts a new session. It does not fork here, because the process is not the leader of a group yet.
  const start = `setsid sh -c 'echo $$; exec >/dev/null 2>&1 </dev/null 3<&-; for i in 1 2 3 4 5 6 7 8; do "$0/comet" & done' "$DIRECTORY" &`;
  const group = Number(await printedBy(`${start}\nsleep 0.2`));
  expect(group).toBeGreaterThan(1);
  try {
    // A process that has ended still exists until its parent has waited for it.
    await vi.waitFor(() => expect(() => process.kill(-group, 0)).toThrow('ESRCH'), {
      timeout: 60_000,
    });
  } finally {
    // The kernel ends a whole group at once.
    expect(() => process.kill(-group, 'SIGKILL')).toThrow('ESRCH');
  }
});

attackAsNobody('it cannot fill the process table', async () => {
  const bomb =
    'n=0; while (sleep 5 & exit) 2>/dev/null; do n=$((n + 1)); [ $n -lt 3000 ] || break; done; echo "$n"';
  expect(Number(await printedBy(bomb))).toBeLessThan(3000);
});
