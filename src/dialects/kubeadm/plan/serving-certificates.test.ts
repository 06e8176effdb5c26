/** Shows when requests for serving certificates are checked, and how long Refit waits for a request. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { KubeObject, Resource } from '../../../kube/resources.ts';
import { StatusError } from '../../../kube/status-error.ts';
import { jsonLogger } from '../../../util/log.ts';
import { parseManifest } from './manifest.ts';
import { approveServing } from './serving-certificates.ts';

interface Given {
  readonly isWanted?: boolean;
  /** More hosts in the manifest, after cp1. */
  readonly more?: string;
  /** The output of the host at each probe. The last output repeats. */
  readonly looks?: readonly string[];
  readonly requests?: readonly KubeObject[];
  /** The errors with which reads of requests fail, one after the other. */
  readonly failures?: readonly Error[];
}

async function visit({
  isWanted = true,
  more = '',
  looks = [''],
  requests = [],
  failures = [],
}: Given) {
  const left = [...failures];
  let reads = 0;
  const manifest = parseManifest(
    `{version: v1.36.3, approveServingCertificates: ${isWanted}, hosts: [{name: cp1, role: controlPlane}${more}], binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}`,
    'm.yaml',
  );
  let asked = 0;
  let running = 0;
  let together = 0;
  const clock = new FakeClock(0, { skipsWaits: true });
  const lines: string[] = [];
  const client = {
    async listAll({ kind }: Resource) {
      if (kind === 'Node') reads++;
      const failure = left.shift();
      if (failure) throw failure;
      return await Promise.resolve({
        metadata: {},
        items: kind === 'CertificateSigningRequest' ? requests : [],
      });
    },
    get: async () => await Promise.resolve({ data: {} }),
  } as unknown as KubeClient;
  const approve = approveServing({
    manifest,
    client,
    server: 'https://127.0.0.1:6443',
    addressesOf: async (names) => await Promise.resolve(names),
    shells: {
      async run({ name }) {
        together = Math.max(together, ++running);
        await Promise.resolve();
        running--;
        if (name !== 'cp1') throw new Error(`${name} does not answer`);
        return await Promise.resolve({
          code: 0,
          stdout: looks[asked++] ?? looks.at(-1) ?? '',
          stderr: '',
        });
      },
    },
    clock,
    log: jsonLogger(
      (line) => void lines.push(line),
      () => 0,
      'warn',
    ),
    abort: new AbortController().signal,
  });
  await approve(manifest.hosts);
  const said = lines.map((line) => JSON.parse(line) as Record<string, string>);
  return {
    asked,
    together,
    reads,
    seconds: clock.now() / 1000,
    names: said.map((each) => each['request']),
    problems: said.map(({ why, problem }) => why ?? problem),
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
  expect(await visit({ looks: ['waits=\n', 'waits=\n', ''] })).toMatchObject({
    asked: 3,
    problems: [],
  });
});

test('a kubelet that asks for nothing is not waited for for ever', async () => {
  const { asked, seconds, problems } = await visit({ looks: ['waits=\n'] });
  expect([asked > 5, seconds < 60, problems]).toEqual([
    true,
    true,
    ['its kubelet has no certificate yet'],
  ]);
});

test('an old request that is wrong does not end the wait for one that is right', async () => {
  const found = await visit({ looks: ['waits=\n', 'waits=\n', ''], requests: [request] });
  expect(found).toMatchObject({
    asked: 3,
    problems: ['the groups of its creator lack system:nodes'],
  });
});

test('what is needed to judge is read once each time, and the newest five are judged', async () => {
  const requests = Array.from({ length: 9 }, (_, at) => ({
    ...request,
    metadata: { name: `csr-${at}`, creationTimestamp: `2026-11-22T08:00:0${at}Z` },
  }));
  const { reads, names } = await visit({ requests });
  expect([reads, names]).toEqual([1, ['csr-8', 'csr-7', 'csr-6', 'csr-5', 'csr-4']]);
});

test('a short error of the API server, as a conflict, is no end', async () => {
  const failures = [
    new Error('try again'),
    new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' }),
  ];
  expect(await visit({ looks: ['waits=\n', ''], failures })).toMatchObject({
    asked: 3,
    problems: [],
  });
});

test('without the right nobody is waited for', async () => {
  const failures = [
    new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'no right' }),
  ];
  expect(await visit({ looks: ['waits=\n'], failures })).toMatchObject({
    asked: 1,
    problems: ['no right'],
  });
});

test('no more hosts are looked at together than ssh may reach at a time', async () => {
  const more = Array.from({ length: 99 }, (_, at) => `, {name: w${at}, role: worker}`).join('');
  const { together, problems } = await visit({ more });
  expect([together, problems.length]).toEqual([32, 99]);
});

test('a host that does not answer is named, and holds up no other', async () => {
  const found = await visit({ more: ', {name: w1, role: worker}', looks: ['waits=\n', ''] });
  expect(found).toMatchObject({ asked: 2, problems: ['w1 does not answer'] });
});
