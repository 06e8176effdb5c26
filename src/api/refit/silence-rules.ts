/** Defines the schema of `silences` of an UpgradePolicy. */
import { z } from 'zod';
import { LONGEST, object, optional } from '../crd.ts';
import { serverSecretSchema, serverUrlSchema } from './health-rules.ts';
import { durationSchema, rules } from './policy-values.ts';

/**
 * The maximum number of silences of a policy. Without this limit, a policy could make the leader send any number of
 * requests.
 */
const MOST_SILENCES = 5;
const MOST_MATCHERS = 10;
const LONGEST_NAME = 30;
const LONGEST_VALUE = 512;

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/**
 * Matches the regular expressions that select the alerts of one Node only. An expression with an alternative (`|`), or
 * with an optional part after the name of the Node, could also match the names of other Nodes. A parenthesis could close
 * the group into which Alertmanager puts the expression, and an empty quotation (`\Q\E`) could make the colon optional.
 */
const OF_NODE = /^\{node\}(:(([^?*+{|()\\]|\\[^QE])([^|()\\]|\\[^QE])*)?)?$/;
/** Says which value of a matcher matches alerts of one node only. */
const VALUE_OF_NODE =
  'its value must contain {node}; a regular expression must begin with {node}, must then end or continue with a colon, and must not contain |, parentheses, \\Q or \\E';
export const WANTED_NODE = `one matcher must match alerts of one node only: ${VALUE_OF_NODE}`;
const WANTED_LABEL = 'must be the name of a label of alerts, such as node';
const WANTED_DURATION = 'must be a time from 1m to 1h, such as 5m';

const matcherSchema = object('One matcher. An alert is silenced if all of them match.', {
  name: z
    .string()
    .max(LONGEST.labelKey)
    .regex(LABEL, WANTED_LABEL)
    .describe('The label, such as `node`.'),
  value: z
    .string()
    .min(1)
    .max(LONGEST_VALUE)
    .describe('The value of the label. `{node}` is replaced with the name of the Node.'),
  isRegex: z
    .boolean()
    .exactOptional()
    .describe('Whether the value is a regular expression, which must match the whole label.'),
});

const silenceSchema = object('One silence for each node in progress.', {
  name: z
    .string()
    .max(LONGEST_NAME)
    .regex(NAME, 'must consist of lower-case letters, digits and hyphens, for example nodes')
    .describe('The name, which no other silence of the policy has.'),
  url: serverUrlSchema.describe(
    'The address of Alertmanager, such as `http://alertmanager.monitoring:9093`.',
  ),
  secretName: serverSecretSchema,
  matchers: optional(
    'Which alerts are silenced; by default those whose label `node` is the name of the Node. At least one matcher must have `{node}` in its value.',
    z.array(matcherSchema).min(1).max(MOST_MATCHERS).meta({ 'x-kubernetes-list-type': 'atomic' }),
  ),
  duration: optional(
    'How long the silence lasts after each renewal, from 1m to 1h; 5m by default. The leader renews it while the node is in progress.',
    durationSchema.meta(
      rules([
        "duration(self) >= duration('1m') && duration(self) <= duration('1h')",
        WANTED_DURATION,
      ]),
    ),
  ),
}).meta(
  rules([
    `!has(self.matchers) || self.matchers.exists(m, has(m.isRegex) && m.isRegex ? m.value.matches(r'${OF_NODE.source}') : m.value.contains('{node}'))`,
    WANTED_NODE,
  ]),
);

/** Returns true if a matcher with this value matches alerts about one Node only. */
export function tellsNode(value: string, isRegex: boolean): boolean {
  return isRegex ? OF_NODE.test(value) : value.includes('{node}');
}

export const silencesSchema = optional(
  'Silences in Alertmanager for the nodes in progress. Each ends by itself if no leader renews it.',
  z
    .array(silenceSchema)
    .max(MOST_SILENCES)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
);
