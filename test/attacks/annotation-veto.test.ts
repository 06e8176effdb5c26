/**
 * Tests that the rules of a host, and not an annotation, decide what root downloads and runs there. An attacker may
 * annotate the Node.
 */
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startHttpsMirror } from '../agent/https-mirror.ts';
import { NEW, type RigOptions } from '../agent/rig.ts';
import { attackAsNobody, NOBODY, startNode, useCluster } from './rig.ts';

useCluster();

/** Returns the reason why the agent refuses the signal. Verifies that nothing was downloaded. */
async function refusal(
  flags: readonly string[],
  more: object,
  options: Partial<RigOptions> = {},
): Promise<string> {
  await using node = await startNode({ flags, ...options });
  const before = await node.installed();
  node.startAgent();
  await node.send('/new', NEW, more);
  await node.end();
  expect(node.statuses.at(-1)).toBe('FailedDownload');
  expect(node.server.requests).toEqual([]);
  expect(await node.installed()).toBe(before);
  return (await node.report())?.reason ?? '';
}

test.each<[string, string[], object, string]>([
  ['neither https nor a sha256', [], { sha256: undefined }, 'needs a sha256'],
  [
    'no sha256',
    ['--require-sha256', '--unverified-downloads', 'allow'],
    { sha256: undefined },
    'requires a sha256',
  ],
  ['plain http', ['--require-https'], {}, 'requires https'],
  [
    'another host',
    ['--allowed-hosts', 'mirror.example,*.example.com'],
    {},
    'downloads nothing from 127.0.0.1',
  ],
  [
    'a version with known holes',
    ['--lowest-version', 'v1.40.0+k0s.0'],
    {},
    'is below v1.40.0+k0s.0',
  ],
  ['a downgrade', ['--refuse-downgrade'], { version: 'v1.36.2+k0s.0' }, 'the running version'],
])('%s is refused', async (_name, flags, more, reason) =>
  expect(await refusal(flags, more)).toContain(reason),
);

test.each([['--lowest-version', 'v1.36.4+k0s.0'], ['--refuse-downgrade']])(
  'a forced update that brings another version than it names does not get past %s',
  async (...flags) => {
    await using node = await startNode({ flags });
    const before = await node.installed();
    node.startAgent();
    await node.send('/new', 'v1.36.5+k0s.0', { forceupdate: true });
    await node.end();
    expect(node.statuses.at(-1)).toBe('Failed');
    expect((await node.report())?.reason).toContain('trial run of the new binary');
    expect(await node.installed()).toBe(before);
  },
);

test('a redirect leaves neither the allowed hosts nor https', async () => {
  let plain = '';
  await using mirror = await startHttpsMirror(({ url }, response) => {
    response.writeHead(302, { location: plain + url }).end();
  });
  await using node = await startNode({ environment: mirror.trust });
  plain = node.server.url;
  const url = `${mirror.server.config.server}/new`;
  const agent = node.startAgent();
  await node.send('/new', NEW, { url, sha256: undefined });
  await node.end();
  expect((await node.report())?.reason).toContain('leads to plain http');
  await agent.stop('SIGTERM');
  node.startAgent('--allow-insecure-redirect', '--allowed-hosts', new URL(url).host);
  await node.send('/new', NEW, { url });
  await node.end();
  expect((await node.report())?.reason).toContain('this agent downloads nothing from');
  expect(node.server.requests).toEqual([]);
});

attackAsNobody('the rules come from a file that only root can change', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-veto-'));
  try {
    const file = join(directory, 'agent.yaml');
    await writeFile(file, '# of this host\nrequire-https: true\n');
    expect(await refusal(['--config', file], {})).toContain('requires https');
    await chmod(file, 0o666);
    await using node = await startNode();
    expect(await node.startAgent('--config', file).exited).not.toBe(0);
    expect(node.agent?.log.join('\n')).toContain(`others may write to ${file}`);
    await chown(file, NOBODY, NOBODY);
    expect(await node.startAgent('--config', file).exited).not.toBe(0);
    expect(node.agent?.log.join('\n')).toContain(`belongs to user ${NOBODY}`);
  } finally {
    await rm(directory, { recursive: true });
  }
});
