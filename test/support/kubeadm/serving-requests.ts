/** Creates requests for serving certificates as kubelets do, with openssl and the rights of a Node. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { StandInHost } from '../../../sandbox/sshd/stand-in-host.ts';
import { run } from '../../../tools/controlplane/run.ts';
import { apply, kubectlAs } from '../../testenv/control-plane.ts';

/**
 * Creates two requests: a correct request from w1, and a request from w9, which does not exist. Each host shows its own
 * address.
 */
export async function requestFromHosts(hosts: readonly StandInHost[]): Promise<void> {
  await apply(await readFile(APPROVAL_RIGHTS, 'utf8'));
  await requestServing('of-w1', 'w1', 'IP:127.0.0.13');
  await requestServing('of-w9', 'w9', 'IP:127.0.0.19');
  for (const [index, { root }] of hosts.entries()) {
    const line = `2: eth0    inet 127.0.0.${11 + index}/8 brd 127.255.255.255 scope global eth0`;
    await writeFile(join(root, 'usr/bin/ip'), `#!/bin/sh\necho '${line}'\n`, { mode: 0o755 });
  }
}

export async function removeRequests(): Promise<void> {
  await kubectlAs('admin', ['delete', 'csr', 'of-w1', 'of-w9']);
  await kubectlAs('admin', ['delete', '-f', APPROVAL_RIGHTS]);
}

export const APPROVAL_RIGHTS = 'deploy/rbac-kubeadm-approval.yaml';

/** `names` has the format of openssl's subjectAltName. */
export async function requestServing(name: string, node: string, names: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-serving-'));
  const user = `system:node:${node}`;
  const file = join(directory, 'request');
  const subject = [
    '-subj',
    `/O=system:nodes/CN=${user}`,
    '-addext',
    `subjectAltName=${names}`,
    '-out',
    file,
  ];
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    `${file}.key`,
  ];
  expect(await run('openssl', ['req', '-new', ...key, ...subject])).toMatchObject({ ok: true });
  const object = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: await readFile(file, 'base64'),
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
    },
  };
  const as = [`--as=${user}`, '--as-group=system:nodes', '--as-group=system:authenticated'];
  expect(
    await kubectlAs('admin', ['create', '-f', '-', ...as], JSON.stringify(object)),
  ).toMatchObject({ ok: true });
  await rm(directory, { recursive: true });
}
