/** Shows when requests for serving certificates are looked at, and how long a request is waited for. */
import { expect, test } from 'vitest';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { Clock } from '../../util/clock.ts';
import { jsonLogger } from '../../util/log.ts';
import { parseManifest } from './manifest.ts';
import { approveServing } from './serving-certificates.ts';

interface Given {
  readonly isWanted?: boolean;
  /** What the host says each time; the last one stays. */
  readonly looks?: readonly string[];
  readonly requests?: readonly KubeObject[];
}

async function visit({ isWanted = true, looks = [''], requests = [] }: Given) {
  const manifest = parseManifest(
    `{version: v1.36.3, approveServingCertificates: ${isWanted}, hosts: [{name: cp1, role: controlPlane}], binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}`,
    'm.yaml',
  );
  const [host] = manifest.hosts;
  if (!host) throw new Error('no host');
  let now = 0;
  let asked = 0;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    schedule(ms, callback) {
      now += ms;
      queueMicrotask(callback);
      return () => undefined;
    },
  };
  const lines: string[] = [];
  const client = {
    listAll: async ({ kind }: Resource) =>
      await Promise.resolve({ metadata: {}, items: kind === 'CertificateSigningRequest' ? requests : [] }),
    get: async () => await Promise.resolve({ data: {} }),
  } as unknown as KubeClient;
  const approve = approveServing({
    manifest,
    client,
    shells: {
      run: async () => await Promise.resolve({ code: 0, stdout: looks[asked++] ?? looks.at(-1) ?? '', stderr: '' }),
    },
    clock,
    log: jsonLogger(
      (line) => void lines.push(line),
      () => 0,
      'warn',
    ),
    abort: new AbortController().signal,
  });
  await approve([host]);
  return {
    asked,
    seconds: now / 1000,
    problems: lines.map((line) => (JSON.parse(line) as { why: string }).why),
  };
}

const request = { metadata: { name: 'csr-1' }, spec: { username: 'system:node:cp1', request: '' } };

test('nobody is asked unless the manifest wants it', async () => {
  expect(await visit({ isWanted: false })).toMatchObject({ asked: 0 });
});

test('a kubelet that has its certificate is asked once', async () => {
  expect(await visit({ looks: ['address=10.0.0.1\n'] })).toMatchObject({ asked: 1, problems: [] });
});

test('a kubelet without one is waited for, until it has it', async () => {
  expect(await visit({ looks: ['waits=\n', 'waits=\n', ''] })).toMatchObject({ asked: 3, problems: [] });
});

test('a kubelet that asks for nothing is not waited for for ever', async () => {
  const { asked, seconds } = await visit({ looks: ['waits=\n'] });
  expect([asked > 5, seconds < 60]).toEqual([true, true]);
});

test('a request that is wrong is not waited for', async () => {
  const found = await visit({ looks: ['waits=\n'], requests: [request] });
  expect(found).toMatchObject({ asked: 1, problems: ['the groups of its maker lack system:nodes'] });
});
