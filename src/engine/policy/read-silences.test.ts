/** Tests which silences a policy has, and what `refit validate` prints about invalid silences. */
import { expect, test } from 'vitest';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { readPolicy } from './read-policy.ts';

const url = 'http://alertmanager.monitoring:9093';
const nodes = { name: 'nodes', url };

function read(...silences: readonly object[]) {
  const policy = buildUpgradePolicy('careful', { silences } as unknown as UpgradePolicySpec);
  const { silences: rules, problems } = readPolicy(policy);
  const prefix = 'UpgradePolicy careful: ';
  return { rules, problems: problems.map(({ message }) => message.replace(prefix, '')) };
}

test('by default the label node is matched, and a silence ends five minutes ahead', () => {
  const matchers = [{ name: 'instance', value: '{node}:.*', isRegex: true }];
  const exporters = { name: 'exporters', url, secretName: 's', matchers, duration: '90s' };
  expect(read(nodes, exporters)).toEqual({
    problems: [],
    rules: [
      {
        name: 'nodes',
        url,
        matchers: [{ name: 'node', value: '{node}', isRegex: false }],
        lastsMs: 300_000,
      },
      { name: 'exporters', url, secretName: 's', matchers, lastsMs: 90_000 },
    ],
  });
});

test.each([
  ['{node}', false],
  ['host-{node}:9100', false],
  ['{node}', true],
  ['{node}:', true],
  ['{node}:[0-9]{4,5}', true],
])('a silence with %s, as a regular expression: %s, is one of a single node', (value, isRegex) => {
  const { rules, problems } = read({ ...nodes, matchers: [{ name: 'node', value, isRegex }] });
  expect({ rules: rules?.length, problems }).toEqual({ rules: 1, problems: [] });
});

test.each([
  ['critical', false],
  ['{nodes}', false],
  ['.*', true],
  ['{node}|.*', true],
  ['.*|{node}', true],
  ['{node}.*', true],
  ['{node}*', true],
  ['{node}?.*', true],
  ['{node}{0}.*', true],
  ['({node})?.*', true],
  ['{node}:?.*', true],
  ['{node}:*.*', true],
  ['{node}:{0}.*', true],
  ['{node}:1)|(.*', true],
])('nothing starts with %s, as a regular expression: %s', (value, isRegex) => {
  const { rules, problems } = read({ ...nodes, matchers: [{ name: 'node', value, isRegex }] });
  expect(rules).toEqual([]);
  expect(problems).toEqual([
    expect.stringMatching(
      /^spec\.silences\[0\]\.matchers must be a list in which one matcher must match/,
    ),
  ]);
});

test.each<[string, readonly object[], string]>([
  [
    'a name twice',
    [nodes, nodes],
    'spec.silences[1].name must be a name that no other silence has; found "nodes"',
  ],
  [
    'a long duration',
    [{ ...nodes, duration: '2h' }],
    'spec.silences[0].duration must be a time from 1m to 1h, such as 5m; found "2h"',
  ],
  [
    'a label of Kubernetes',
    [{ ...nodes, matchers: [{ name: 'kubernetes.io/hostname', value: '{node}' }] }],
    'spec.silences[0].matchers[0].name: is the text "kubernetes.io/hostname", must be the name of a label of alerts, such as node',
  ],
  ['no address', [{ name: 'nodes' }], 'spec.silences[0].url: is missing, expected a text'],
])(
  '%s: the problem names the field, what was found and what would be right',
  (_w, all, problem) => {
    expect(read(...all).problems).toEqual([problem]);
  },
);
