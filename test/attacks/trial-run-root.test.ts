/** Runs a downloaded file that is an attacker's program: the trial run must give it no rights. */
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startDownloadServer } from '../../sandbox/hosts/download-server.ts';
import { NEW } from '../agent/rig.ts';
import { attackAsNobody, startNode, useCluster } from './rig.ts';

useCluster();

/** What the agent says of a version that this script printed. */
async function reasonAfter(script: string): Promise<string> {
  await using node = await startNode({ environment: { REFIT_TEST_SECRET: 'secret' } });
  const directory = await mkdtemp(join(tmpdir(), 'refit-payload-'));
  const [path, text] = [join(directory, 'payload'), `#!/bin/sh\n${script}\n`];
  await writeFile(path, text);
  const server = await startDownloadServer({ files: { '/payload': path } });
  try {
    node.startAgent();
    const sha256 = createHash('sha256').update(text).digest('hex');
    await node.send('/new', NEW, { url: `${server.url}/payload`, sha256 });
    await node.end();
    return (await node.report())?.reason ?? '';
  } finally {
    await server.stop();
    await rm(directory, { recursive: true });
  }
}

attackAsNobody('it has no rights', async () => {
  expect(await reasonAfter('echo "$(id -u) $(id -g) $(id -G)"')).toMatch(/"(\d{10}) \1 \1"/);
});

test('it has no environment, no terminal and a session of its own', async () => {
  expect(await reasonAfter('echo "<$REFIT_TEST_SECRET$KUBECONFIG$HOME>"')).toContain('"<>"');
  const session = 'read -r _ _ _ _ _ session rest < /proc/$$/stat; echo "$((session - $$))"';
  expect(await reasonAfter(session)).toContain('"0"');
});

attackAsNobody('nothing that it starts outlives it, not in a session of its own either', async () => {
  const mark = `7${process.pid}777`;
  await reasonAfter(`setsid sleep ${mark} >/dev/null 2>&1 &\nsleep ${mark} &\necho v0`);
  const commands = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map(async (pid) => await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  expect(commands.filter((command) => command === `sleep\0${mark}\0`)).toEqual([]);
});

test('it writes no file', async () => {
  expect(await reasonAfter('f=/tmp/refit-trial-$$; (echo x > $f) 2>/dev/null; wc -c < $f; rm -f $f')).toContain('"0"');
});

test('it gets little memory, and is the first to go when the host has none left', async () => {
  // tail keeps the one line that it is given.
  expect(await reasonAfter('head -c 1300000000 /dev/zero | tail -n 1 | wc -c')).not.toContain('"1300000000"');
  expect(await reasonAfter('cat /proc/self/oom_score_adj')).toContain('"1000"');
});
