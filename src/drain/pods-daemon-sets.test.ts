/**
 * Shows which answers of an API server mean that a DaemonSet was deleted. With any other answer, the pods of the
 * DaemonSet are left alone.
 */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { refuse } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import type { KubeClient } from '../kube/client.ts';
import { TransportError } from '../kube/status-error.ts';
import { daemonSetsOf } from './pods.ts';

const POD = buildPod('p', { controller: 'DaemonSet/ds' });

function answering(answer: Error | object): KubeClient {
  const get = async (): Promise<object> => {
    await Promise.resolve();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { get } as unknown as KubeClient;
}

test.each<[string, Error | object, boolean]>([
  ['the DaemonSet', { metadata: { name: 'ds' } }, false],
  ['that there is none', refuse({ code: 404, reason: 'NotFound', details: { name: 'ds' } }), true],
  ['that there is no such kind', refuse({ code: 404, reason: 'NotFound' }), false],
  ['that nobody of that name may ask', refuse({ code: 403, reason: 'Forbidden' }), false],
  ['nothing', new TransportError('reset'), false],
])('the server answers %s', async (_name, answer, isOrphaned) => {
  const daemonSets = daemonSetsOf(answering(answer));
  expect(daemonSets.isOrphaned(POD)).toBe(false);
  await daemonSets.learn([POD, buildPod('other')], new AbortController().signal);
  expect(daemonSets.isOrphaned(POD)).toBe(isOrphaned);
});

test('an abort is not taken for an answer', async () => {
  const stop = new AbortController();
  const daemonSets = daemonSetsOf(answering(new TransportError('aborted')));
  stop.abort(new Error('the lease is lost'));
  await expect(daemonSets.learn([POD], stop.signal)).rejects.toThrow('the lease is lost');
});

test('an abort while several DaemonSets are asked about fails once, and ends no process', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  const stop = new AbortController();
  const daemonSets = daemonSetsOf(answering(new TransportError('aborted')));
  const pods = ['a', 'b', 'c'].map((name) => buildPod(name, { controller: `DaemonSet/${name}` }));
  const learning = daemonSets.learn(pods, stop.signal);
  stop.abort(new Error('the lease is lost'));
  await expect(learning).rejects.toThrow('the lease is lost');
  await setImmediate();
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});
