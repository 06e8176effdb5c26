/**
 * Tests when the label on a node's Lease is expected: always, except if the server refused the label and the Lease does
 * not have it.
 */
import { expect, test } from 'vitest';
import type { KubeClient } from '../../kube/client.ts';
import { StatusError, TransportError } from '../../kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import { type LeaseDelegation, leaseDelegation } from './lease-delegation.ts';

const { signal: abort } = new AbortController();
const refusal = (code: number): Error => new StatusError({ kind: 'Status', code });
const marked = {
  metadata: { labels: { [CENTRAL_CORDONING_LABEL]: '' } },
  spec: { holderIdentity: 'n' },
};
const unmarked = { metadata: {}, spec: { holderIdentity: 'n' } };

/**
 * Returns a delegation. `answers` are the answers to attempts to set the label, and `lease` is the answer to a read of
 * the Lease.
 */
function delegationWith(answers: (Error | 'ok')[], lease: object): LeaseDelegation {
  const patch = async (): Promise<object> => {
    const answer = answers.shift();
    return await (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(marked));
  };
  const get = async (): Promise<object> =>
    await (lease instanceof Error ? Promise.reject(lease) : Promise.resolve(lease));
  return leaseDelegation({ patch, get } as unknown as KubeClient);
}

test.each<[string, (Error | 'ok')[], object, boolean]>([
  ['not tried yet', [], unmarked, true],
  ['set', ['ok'], unmarked, true],
  ['tried without an answer', [new TransportError('down')], unmarked, true],
  ['tried at a server in trouble', [refusal(500)], unmarked, true],
  ['refused for lack of a right', [refusal(403)], unmarked, false],
  ['refused by a policy', [refusal(422)], unmarked, false],
  ['refused by a webhook', [refusal(400)], unmarked, false],
  ['refused, and then no answer', [refusal(403), new TransportError('down')], unmarked, false],
  ['refused, and set at last', [refusal(403), 'ok'], unmarked, true],
  ['refused, and there from before', [refusal(403)], marked, true],
  ['refused, and no lease', [refusal(403)], refusal(404), false],
  ['refused, and not to be looked at', [refusal(403)], refusal(403), true],
])(
  'whether the Lease of a node will have the label, if it was %s',
  async (_name, answers, lease, expected) => {
    const delegation = delegationWith(answers, lease);
    while (answers.length > 0) await delegation.offer('n', abort).catch(() => undefined);
    expect(await delegation.isExpected('n', abort)).toBe(expected);
  },
);

test('a label that went with its lease is set again when it is asked for', async () => {
  let lease: object = unmarked;
  const asked: string[] = [];
  const get = async (): Promise<object> => await Promise.resolve(lease);
  const patch = async (_resource: unknown, name: string): Promise<object> => {
    asked.push(name);
    lease = marked;
    return await Promise.resolve(lease);
  };
  const delegation = leaseDelegation({ patch, get } as unknown as KubeClient);
  const twice = [await delegation.isExpected('n', abort), await delegation.isExpected('n', abort)];
  expect(twice).toEqual([true, true]);
  expect(asked).toEqual(['n']);
});

test('after a refusal to set the label again, the label is not expected any more', async () => {
  const delegation = delegationWith([refusal(403)], unmarked);
  await expect(delegation.isExpected('n', abort)).rejects.toThrow();
  expect(await delegation.isExpected('n', abort)).toBe(false);
});

test('an agent that cannot read the Lease gets the error', async () => {
  const delegation = delegationWith([refusal(403)], new TransportError('down'));
  await expect(delegation.offer('n', abort)).rejects.toThrow();
  await expect(delegation.isExpected('n', abort)).rejects.toThrow('down');
});
