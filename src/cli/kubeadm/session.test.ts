/** Proves that a run outlives an API server that goes away amid its work, where kubeadm replaces it, and only there. */
import { expect, test } from 'vitest';
import { parseManifest } from '../../dialects/kubeadm/manifest.ts';
import { TransportError } from '../../kube/status-error.ts';
import { systemClock } from '../../util/clock.ts';
import { type KubeadmSession, throughOutages } from './session.ts';

const hosts = '{name: cp1, role: controlPlane}, {name: cp2, role: controlPlane}';
const binaries = '{kubeadm: {path: /a}, kubelet: {path: /b}}';
const manifest = parseManifest(`{version: v1.36.3, hosts: [${hosts}], binaries: ${binaries}}`, 'm.yaml');
const cut = new TransportError('socket hang up');

/** `busy` is what hosts are busy with at each probe; the load balancer answers always. */
function sessionWith(busy: string[]): [KubeadmSession, string[]] {
  const said: string[] = [];
  const run = async () => await Promise.resolve({ code: 0, stdout: `${busy.shift() ?? ''}\n`, stderr: '' });
  const raw = async () => await Promise.resolve({ status: 200, body: 'ok' });
  const output = { write: (line: string) => said.push(line) };
  const abort = AbortSignal.timeout(20_000);
  const session = { client: { raw }, manifest, shells: { run }, output, clock: systemClock, abort };
  return [session as unknown as KubeadmSession, said];
}

function failing(times: number, error: Error): () => Promise<string> {
  let left = times;
  return async () => (left-- > 0 ? await Promise.reject(error) : await Promise.resolve('done'));
}

test('the work begins again while kubeadm of a killed run replaces an API server behind the load balancer', async () => {
  const [session] = sessionWith(['', '', 'busy=step', '', '', 'busy=kubeadm']);
  expect(await throughOutages(session, failing(2, cut))).toBe('done');
});

test('where no host is at work, the error stands', async () => {
  const [session] = sessionWith([]);
  await expect(throughOutages(session, failing(1, cut))).rejects.toThrow('socket hang up');
});

test('another error stands, too, and no host is asked again', async () => {
  const [session] = sessionWith(['', '', 'busy=step', 'busy=step']);
  await expect(throughOutages(session, failing(1, new Error('refused')))).rejects.toThrow('refused');
});
