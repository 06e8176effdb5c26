/** Tests that the trial run gives no rights to a downloaded file that is a program of an attacker. */
import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { attackAsNobody, reasonAfter, useCluster } from './rig.ts';

useCluster();

/** Runs the script in an agent whose environment contains a secret. */
async function reasonBeside(script: string): Promise<string> {
  return await reasonAfter(script, { environment: { REFIT_TEST_SECRET: 'secret' } });
}

attackAsNobody('it has no rights', async () => {
  expect(await reasonBeside('echo "$(id -u) $(id -g) $(id -G)"')).toMatch(/"(\d{10}) \1 \1"/);
});

attackAsNobody(
  'it gets no new rights by a program that would give some, and reaches no network',
  async () => {
    expect(
      await reasonBeside(
        'while read -r name value; do [ "$name" != NoNewPrivs: ] || echo "$value"; done </proc/self/status',
      ),
    ).toContain('"1"');
    // The program has its own network namespace, which contains only a loopback device that is down.
    expect(
      await reasonBeside(
        'cd /proc/self/net && while read -r name _; do case $name in *:) printf %s "$name" ;; esac; done <dev; echo',
      ),
    ).toContain('"lo:"');
    // With all these restrictions, the program must still not run as the user of the agent.
    expect(await reasonBeside('echo "$(id -u) $(id -G)"')).toMatch(/"(\d{10}) \1"/);
  },
);

test('it has no environment, no terminal and a session of its own', async () => {
  expect(await reasonBeside('echo "<$REFIT_TEST_SECRET$KUBECONFIG$HOME>"')).toContain('"<>"');
  const session = 'read -r _ _ _ _ _ session rest < /proc/$$/stat; echo "$((session - $$))"';
  expect(await reasonBeside(session)).toContain('"0"');
});

attackAsNobody(
  'nothing that it starts outlives it, not in a session of its own either',
  async () => {
    const mark = `7${process.pid}777`;
    await reasonBeside(`setsid sleep ${mark} >/dev/null 2>&1 &\nsleep ${mark} &\necho v0`);
    const commands = await Promise.all(
      (await readdir('/proc'))
        .filter((name) => /^\d+$/.test(name))
        .map(async (pid) => await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
    );
    expect(commands.filter((command) => command === `sleep\0${mark}\0`)).toEqual([]);
  },
);

test('it writes no file', async () => {
  expect(
    await reasonBeside('f=/tmp/refit-trial-$$; (echo x > $f) 2>/dev/null; wc -c < $f; rm -f $f'),
  ).toContain('"0"');
});

test('it gets little memory, and is the first to go when the host has none left', async () => {
  // dd takes the memory for a block before it reads the first byte.
  const take =
    'for size in 900M 1200M; do dd if=/dev/null of=/dev/null bs=$size count=1 && printf "$size "; done';
  expect(await reasonBeside(`${take} 2>/dev/null; cat /proc/self/oom_score_adj`)).toContain(
    '"900M 1000"',
  );
});
