/**
 * Tests that the author of a policy cannot silence alerts about nodes that Refit does not upgrade. Alertmanager puts the
 * value of a matcher into `^(?:` and `)$`, and reads it with the syntax of RE2.
 */
import { expect, test } from 'vitest';
import { tellsNode } from '../../src/api/refit/silence-rules.ts';
import { readPolicy } from '../../src/engine/policy/read-policy.ts';
import { wantedFor } from '../../src/silences/silence.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';

const rule = (value: string) => ({
  name: 'x',
  url: 'http://alertmanager.monitoring:9093',
  matchers: [{ name: 'instance', value, isRegex: true }],
});

test.each([
  String.raw`{node}:a)?(.*`,
  String.raw`{node}:a)?(?:.*`,
  String.raw`{node}:(?:a)?)?(.*`,
  String.raw`{node}:\Q\E?.*`,
  String.raw`{node}:\Q\E*[0-9]*`,
  String.raw`{node}:a\Q)?(.*`,
  String.raw`{node}:a\\)?(.*`,
  String.raw`{node}:a|.*`,
  String.raw`{node}:?.*`,
  String.raw`{node}:{0}.*`,
  String.raw`{node}.*`,
  String.raw`.*{node}`,
  String.raw`{node}?.*`,
])('the expression %s is refused, because it also matches other nodes', (value) => {
  const { problems, silences } = readPolicy(buildUpgradePolicy('p', { silences: [rule(value)] }));
  expect(problems.map(({ message }) => message).join()).toContain('must match alerts of one node');
  expect(silences ?? []).toEqual([]);
});

test.each([
  ['{node}', 'w1'],
  ['{node}:9100', 'w1:9100'],
  [String.raw`{node}:\d+`, 'w1:9100'],
  ['{node}:[0-9]{2,5}', 'w1:9100'],
  [String.raw`{node}:a\(b\)`, 'w1:a(b)'],
  ['{node}:.*', 'w1:x'],
])('the expression %s is allowed, and matches no node with a longer name', (value, own) => {
  expect(tellsNode(value, true)).toBe(true);
  const { problems, silences = [] } = readPolicy(
    buildUpgradePolicy('p', { silences: [rule(value)] }),
  );
  expect(problems).toEqual([]);
  const [silence] = silences;
  const [matcher] = silence ? wantedFor(silence, { plan: 'plan', uid: 'uid' }, 'w1').matchers : [];
  const expression = new RegExp(`^(?:${matcher?.value})$`);
  expect(own).toMatch(expression);
  for (const other of ['w10', 'w10:9100', 'w2', 'w2:9100', 'xw1:9100'])
    expect(other).not.toMatch(expression);
});
