/** Tests what `refit install agent` prints about k0s's own agent. */
import { expect, test } from 'vitest';
import { ownAgentLines } from './own-agent-lines.ts';

const WORKER = { role: 'worker', version: 'v1.36.3+k0s.2' } as const;
const CONTROLLER = { role: 'controller', version: 'v1.36.3+k0s.2' } as const;

test('a worker whose k0s runs its own agent: what the agent does there, and the next step', () => {
  const [what, next, ...more] = ownAgentLines({ ...WORKER, ownAgent: true });
  expect(what).toBe("k0s runs its own agent on this host: Refit's agent only watches");
  expect(next).toMatch(
    /^next: run the controllers of k0s with --disable-components=autopilot, wait .*, then restart k0s here \(/,
  );
  expect(more).toEqual([]);
});

test('a controller is restarted with the switch', () => {
  expect(ownAgentLines({ ...CONTROLLER, ownAgent: true }).at(1)).toContain(
    'next: restart k0s here with --disable-components=autopilot',
  );
});

test('a worker of a release without the switch is upgraded first', () => {
  const [, next] = ownAgentLines({ ...WORKER, version: 'v1.34.1+k0s.0', ownAgent: true });
  expect(next).toContain('next: upgrade k0s here to v1.35.1+k0s.0 or later');
});

test.each([
  ['refuse', "Refit's agent refuses every signal"],
  ['replace', "Refit's agent acts as well"],
] as const)('the consequence is that of --beside-k0s %s', (beside, words) => {
  expect(ownAgentLines({ ...WORKER, ownAgent: true }, beside).at(0)).toContain(words);
});

test('where that is not known, the reason and the remedy are said', () => {
  const doubtful = { ...WORKER, ownAgentDoubt: 'no profile; restart k0s here' };
  expect(ownAgentLines(doubtful)).toEqual([
    "Refit's agent waits at each signal: no profile; restart k0s here",
  ]);
  expect(ownAgentLines(doubtful, 'replace')).toEqual([]);
});

test('nothing is said where k0s runs no agent of its own', () => {
  expect(ownAgentLines({ ...WORKER, ownAgent: false })).toEqual([]);
  expect(ownAgentLines(CONTROLLER)).toEqual([]);
});
