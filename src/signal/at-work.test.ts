/**
 * Tests which plan has claimed a Node. The claims of other plans stay, and a kubelet cannot write anything that claims
 * a Node.
 */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { buildSignal } from '../../test/support/builders/signals.ts';
import { encodePresence } from './agent-presence.ts';
import {
  claimOf,
  claimOn,
  isTaken,
  mayBeSignalled,
  otherClaimantOn,
  signallerOf,
  withClaim,
  withoutClaim,
} from './at-work.ts';
import { AGENT_ANNOTATION, ATTEMPT_LABEL } from './names.ts';

const OWN = 'cattle/system-upgrade/k3s/uid-1';
const OTHER = 'kubeadm//cluster/uid-2';
const free = buildNode('w1');
const signalled = (status?: string, labels: Record<string, string> = {}) =>
  buildNode('w1', { annotations: buildSignal(status === undefined ? {} : { status }), labels });
const ATTEMPT = { [ATTEMPT_LABEL]: 'uid.2026' };

test('a claim is set, found again and removed; nothing is written where nothing changes', () => {
  const claimed = withClaim(free, OWN);
  expect(claimOn(claimed)).toBe(OWN);
  expect(otherClaimantOn(claimed, { metadata: { name: 'k3s', uid: 'uid-9' } })).toBe(
    'plan cattle/system-upgrade/k3s',
  );
  expect(otherClaimantOn(claimed, { metadata: { name: 'k3s', uid: 'uid-1' } })).toBeUndefined();
  expect(withClaim(claimed, OWN)).toBe(claimed);
  expect(claimOn(withoutClaim(claimed, OWN))).toBeUndefined();
});

test('a plan without a namespace claims, and is named, without one', () => {
  const plan = { metadata: { name: 'autopilot', uid: 'uid-3' } };
  const claimed = withClaim(free, claimOf('autopilot', plan));
  expect(claimOn(claimed)).toBe('autopilot//autopilot/uid-3');
  expect(otherClaimantOn(claimed, { metadata: { name: 'k3s', uid: 'uid-1' } })).toBe(
    'plan autopilot/autopilot',
  );
});

test('the claim of another plan stays', () => {
  const claimed = withClaim(free, OTHER);
  expect(withoutClaim(claimed, OWN)).toBe(claimed);
  expect(withoutClaim(free, OWN)).toBe(free);
  expect(otherClaimantOn(free, { metadata: { name: 'k3s', uid: 'uid-9' } })).toBeUndefined();
});

test.each([
  ['free', free, false],
  ['claimed', withClaim(free, OTHER), true],
  ['claimed by the plan that asks', withClaim(free, OWN), false],
  ['signalled by a leader', signalled(undefined, ATTEMPT), true],
  ['at work for a leader', signalled('Restart', ATTEMPT), true],
  ['done', signalled('Completed', ATTEMPT), false],
  ['failed', signalled('FailedDownload', ATTEMPT), false],
  ['signalled by its own kubelet', signalled(), false],
  ['signalled once', buildNode('w1', { labels: ATTEMPT }), false],
])('a Node that is %s: taken or not', (_what, node, is) => {
  expect(isTaken(node, OWN)).toBe(is);
});

test('without a plan that asks, every claim takes the Node', () => {
  expect([isTaken(free), isTaken(withClaim(free, OWN))]).toEqual([false, true]);
});

test('who signalled a Node counts until it is done there', () => {
  expect(signallerOf(signalled())).toBe('id1');
  expect(signallerOf(signalled('RollingBack'))).toBe('id1');
  expect(signallerOf(signalled('Failed'))).toBeUndefined();
  expect(signallerOf(free)).toBeUndefined();
});

const running = (kubeletVersion: string) => ({
  ...free,
  status: { ...free.status, nodeInfo: { kubeletVersion } },
});

test.each([
  ['a kubelet of k0s', running('v1.36.3+k0s'), true],
  ['a kubelet of another distribution', running('v1.36.3+k3s1'), false],
  ['nothing', free, false],
  ['a signal', signalled('Completed'), true],
  [
    'an agent',
    buildNode('w1', {
      annotations: { [AGENT_ANNOTATION]: encodePresence({ version: '1', since: '' }) },
    }),
    true,
  ],
])('%s on a Node: whether plans that signal may have it as a target', (_what, node, is) => {
  expect(mayBeSignalled(node)).toBe(is);
});
