/** A manifest carries shell in its fields: on the host each value is text, it runs nothing and breaks no script. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { array, assert, asyncProperty, constantFrom, oneof, record, string } from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Binary, parseManifest } from '../../src/dialects/kubeadm/manifest.ts';
import { restoreFactsScript, restoreScripts } from '../../src/dialects/kubeadm/restore-etcd.ts';
import {
  diffScript,
  kubeadmBody,
  kubeletBody,
  prepareScript,
  probeScript,
  quoted,
  repairScript,
  type StepBody,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/scripts.ts';
import { printableUrl } from '../../src/util/printable-url.ts';
import { run } from '../../tools/controlplane/run.ts';
import { WHOLE } from '../whole.ts';

let root = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-injected-'));
  const tools: Record<string, string> = {
    // Nothing waits and nothing of this machine is touched.
    kubeadm: 'exit 0',
    kubelet: 'exit 0',
    systemctl: 'exit 0',
    etcdutl: 'exit 0',
    curl: 'printf "%s\\n" "$@" >"$REFIT_ROOT/curl"; exit 22',
  };
  await mkdir(join(root, 'usr/bin'), { recursive: true });
  for (const [name, body] of Object.entries(tools))
    await writeFile(join(root, 'usr/bin', name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  await mkdir(join(root, 'etc/kubernetes/manifests'), { recursive: true });
  await writeFile(join(root, 'etc/kubernetes/manifests/etcd.yaml'), '    - --data-dir=/data\n    - --name=a\n');
});
afterAll(async () => await rm(root, { recursive: true }));

/** What runs where a value is read as shell. */
const CANARY = 'canary';
const ATTACKS = [
  `$(touch $REFIT_ROOT/${CANARY})`,
  `\`touch $REFIT_ROOT/${CANARY}\``,
  `';touch $REFIT_ROOT/${CANARY};'`,
  `";touch $REFIT_ROOT/${CANARY};"`,
  `'\\'';touch $REFIT_ROOT/${CANARY};'\\''`,
  `\ntouch $REFIT_ROOT/${CANARY}\n`,
  `|touch $REFIT_ROOT/${CANARY}&`,
  `\nEOF\ntouch $REFIT_ROOT/${CANARY}\n`,
  '$((1/0))',
  '${X?no}',
  '-o',
  '\\',
  '"',
  "'",
  '%s%n',
  '*',
  '#',
];
const MANIFEST = parseManifest(
  '{version: v1.36.3, hosts: [{name: a, role: controlPlane}], binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}',
  'm.yaml',
);
/** No NUL byte: `quoted` refuses it. */
const hostile = array(oneof(constantFrom(...ATTACKS), string({ unit: 'binary' })), { maxLength: 4 }).map((parts) =>
  parts.join('').replaceAll('\0', ''),
);
const binary = oneof(
  record({ path: hostile.map((text) => `/${text}`), sha256: hostile }),
  record({ url: hostile, sha256: hostile }),
);
const values = record({ rollout: hostile, version: hostile, kubeadm: binary, kubelet: binary, byHand: hostile });
type Values = { rollout: string; version: string; kubeadm: Binary; kubelet: Binary; byHand: string };

async function onHost(script: string): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}` };
  return await run('sh', ['-s'], { environment, input: script });
}

function bodiesOf({ kubeadm, kubelet, byHand }: Values): StepBody[] {
  return [
    stageBody({ kubeadm, kubelet }),
    stageBody({ kubeadm: kubelet, kubelet: kubeadm, kubectl: kubelet }),
    kubeadmBody('apply', 'controlPlane', { patches: byHand, ignorePreflightErrors: [byHand] }),
    kubeadmBody('node', 'worker', { config: byHand }),
    kubeletBody({ kubectl: kubelet }),
    kubeletBody({}),
  ];
}

async function expectHarmless(script: string): Promise<string> {
  const { stdout, stderr } = await onHost(script);
  expect(stderr).toBe('');
  expect(stdout).not.toMatch(/sh: \d+: .*([Ss]yntax error|[Uu]nterminated|not found)/);
  expect(existsSync(join(root, CANARY))).toBe(false);
  return stdout;
}

test('any values in any script run nothing and leave its syntax whole', async () => {
  const property = asyncProperty(values, async (given) => {
    const { rollout, version, byHand } = given;
    await expectHarmless(repairScript(byHand));
    const { kubeadm, kubelet } = given;
    const [host] = MANIFEST.hosts;
    const manifest = { ...MANIFEST, version, binaries: { kubeadm, kubelet }, kubeadm: { patches: byHand } };
    if (host) await expectHarmless(probeScript(manifest, host, 0));
    if (host) await expectHarmless(prepareScript(manifest, host, false));
    await expectHarmless(diffScript(manifest));
    const restore = { snapshot: byHand, stamp: version };
    await expectHarmless(restoreFactsScript(restore));
    for (const script of Object.values(restoreScripts(restore, rollout))) await expectHarmless(script);
    for (const body of bodiesOf(given)) await expectHarmless(stepScript({ step: 'stage', rollout, version }, body));
  });
  await assert(property, { numRuns: WHOLE ? 30 : 8 });
}, 180_000);

test.each(ATTACKS)('the address %j reaches the download as one argument, and the message as text', async (attack) => {
  const source = { url: `https://example.com/${attack}`, sha256: 'ab'.repeat(32) };
  const script = stepScript(
    { step: 'stage', rollout: 'r', version: 'v1' },
    stageBody({ kubeadm: source, kubelet: source }),
  );
  const stdout = await expectHarmless(script);
  const found = await readFile(join(root, 'curl'), 'utf8');
  expect(found.endsWith(`--\n${source.url}\n`)).toBe(true);
  // A mirror that stalls must not hold the host's lock.
  expect(found).toContain('--speed-time\n60\n');
  // Only the end of the step's log comes back.
  expect(stdout).toContain(printableUrl(source.url).split('\n').at(-1));
});

test.each([
  ['path', { path: '/k0s\ntouch x' }],
  ['sha256 of a path', { path: '/k0s', sha256: `${'ab'.repeat(32)}  /dev/null\n` }],
])('a manifest with a line break in the %s is refused', (_field, kubeadm) => {
  const manifest = {
    version: 'v1.36.3',
    hosts: [{ name: 'a', role: 'controlPlane' }],
    binaries: { kubeadm, kubelet: kubeadm },
  };
  expect(() => parseManifest(JSON.stringify(manifest), 'm.yaml')).toThrow('m.yaml: binaries.kubeadm');
});

test('a NUL byte, which no shell can hold, is refused', () => {
  expect(() => quoted('a\0b')).toThrow('contains a NUL byte');
});
