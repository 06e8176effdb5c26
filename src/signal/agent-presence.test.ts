/** Tests that the annotations of a Node tell which agent runs on it. */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { signalled } from '../../test/support/builders/views.ts';
import { HOUR, later } from '../../test/support/clock/times.ts';
import type { Node } from '../kube/resources.ts';
import {
  type AgentPresence,
  agentOf,
  cgroupV1On,
  configurableOn,
  downloadAnswerOn,
  encodePresence,
} from './agent-presence.ts';
import { encodeReport } from './annotations.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from './names.ts';

const created = later(1000);
const report = encodeReport({ created });
const presence = (more: Partial<AgentPresence> = {}): Record<string, string> => ({
  [AGENT_ANNOTATION]: encodePresence({ version: '1.2.3', since: later(10_000), ...more }),
});
const titleOf = (
  status: string | undefined,
  timestamp: string,
  ...parts: readonly Record<string, string>[]
): string =>
  agentOf(
    signalled(
      buildNode('w1'),
      { created, ...(status && { status, timestamp }) },
      Object.fromEntries(parts.flatMap((part) => Object.entries(part))),
    ),
  ).title;

test('without a word nothing is known', () => {
  expect(agentOf(buildNode('w1'))).toEqual({ ours: false, title: 'unknown' });
  expect(titleOf(undefined, '')).toBe('unknown');
  for (const none of ['{"version":7,"since":""}', '{"version":"1","since":7}', '[]', '{'])
    expect(titleOf(undefined, '', { [AGENT_ANNOTATION]: none })).toBe('unknown');
});

test('a status without our report is of the other agent', () => {
  expect(titleOf('Downloading', later(2000))).toBe("k0s's own");
  expect(titleOf('Downloading', later(2000), report)).toBe('unknown');
});

test('an agent may exclude its node from plans, whoever acts there, until it is silent for long', () => {
  const excluded = buildNode('w1', { annotations: presence({ excluded: true }) });
  expect(agentOf(excluded)).toEqual({ ours: true, title: 'Refit 1.2.3', excluded: true });
  const aside = buildNode('w1', { annotations: presence({ excluded: true, aside: true }) });
  expect(agentOf(aside)).toMatchObject({ ours: false, excluded: true });
  const heartbeat = JSON.stringify({ at: later(0), since: later(10_000) });
  const annotations = { ...presence({ excluded: true }), [HEARTBEAT_ANNOTATION]: heartbeat };
  const silent = buildNode('w1', { annotations });
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: later(HOUR) }];
  expect(
    agentOf({ ...silent, status: { ...silent.status, conditions } } as Node).excluded,
  ).toBeUndefined();
});

test('what an agent of a later version allows besides is left out', () => {
  const node = buildNode('w1', {
    annotations: presence({ configurable: ['/etc/a', 'newer:thing', 'user:b'] }),
  });
  expect(configurableOn(node)).toEqual(['/etc/a', 'user:b']);
});

test('what is said about a download is short, and steers no terminal', () => {
  const problem = `\u001b[2J${'x'.repeat(700)}`;
  const node = buildNode('w1', { annotations: presence({ checked: { id: 'a', problem } }) });
  expect(downloadAnswerOn(node)?.problem).toBe(`\uFFFD[2J${'x'.repeat(596)}`);
});

test('our agent says so, whatever another one reported before its start', () => {
  expect(titleOf(undefined, '', presence())).toBe('Refit 1.2.3');
  expect(titleOf('Completed', later(9000), presence())).toBe('Refit 1.2.3');
  expect(titleOf('Completed', later(10_000), presence())).toBe('Refit 1.2.3');
  expect(titleOf('Completed', later(20_000), presence(), report)).toBe('Refit 1.2.3');
  expect(titleOf(undefined, '', presence({ version: '1'.repeat(100) }))).toBe(
    `Refit ${'1'.repeat(40)}`,
  );
});

test('our agent that stands aside does not act, by its own word or by what the other one reports', () => {
  const aside = "k0s's own (Refit 1.2.3 stands aside)";
  expect(titleOf('Restart', later(20_000), presence())).toBe(aside);
  expect(titleOf(undefined, '', presence({ aside: true }))).toBe(aside);
});

test('what a host may do on cgroup v1: other words count as none', () => {
  const found = (said: object): string | undefined =>
    cgroupV1On(
      buildNode('w1', {
        annotations: {
          [AGENT_ANNOTATION]: JSON.stringify({ version: '1', since: later(0), ...said }),
        },
      }),
    );
  expect(found({ cgroupV1: 'refused' })).toBe('refused');
  expect(found({ cgroupV1: 'refused', aside: true })).toBe('refused');
  expect(found({ cgroupV1: 'allowed' })).toBe('allowed');
  expect(found({ cgroupV1: true })).toBeUndefined();
  expect(found({})).toBeUndefined();
});

test('what an agent said about cgroup v1 is forgotten once it is silent while its kubelet is not', () => {
  const since = later(0);
  const said = JSON.stringify({ version: '1', since, cgroupV1: 'refused' });
  const found = (lastHeartbeatTime: string, at?: string): string | undefined => {
    const beat = at && { [HEARTBEAT_ANNOTATION]: JSON.stringify({ at, since }) };
    const node = buildNode('w1', { annotations: { [AGENT_ANNOTATION]: said, ...beat } });
    const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime }] as const;
    return cgroupV1On({ ...node, status: { ...node.status, conditions: [...conditions] } } as Node);
  };
  expect(found(later(3_600_000), later(3_000_000))).toBe('refused');
  expect(found(later(3_600_000), later(2_000_000))).toBeUndefined();
  expect(found(later(3_600_000))).toBe('refused');
});
