/** Defines the schema of `waves` of an UpgradePolicy. */
import { z } from 'zod';
import { choice, object, optional } from '../crd.ts';
import { boundedSelectorSchema, duration, numberOrShare, rules } from './policy-values.ts';

/** The maximum number of waves. Without this limit, a policy could make each decision slow. */
const MOST_WAVES = 20;

const isOneOf =
  '(has(self.selector) ? 1 : 0) + (has(self.count) ? 1 : 0) + (has(self.percent) ? 1 : 0) <= 1';
const WANTED = 'must have at most one of selector, count and percent';

const waveSchema = object('One wave.', {
  selector: optional('The wave takes the nodes with these labels.', boundedSelectorSchema),
  count: optional(
    'The wave takes this number of nodes, which Refit chooses at random.',
    z.int().min(1).max(100_000),
  ),
  percent: optional(
    'The wave takes this share of the workers of the plan, in percent, which Refit chooses at random; rounded down, but at least one worker.',
    z.int().min(1).max(100),
  ),
  settle: duration(
    'How long after the end of this wave the next one may start, such as `1h`; at once by default.',
  ),
  failureBudget: optional(
    'How many nodes of this wave may fail, as a number or a share such as `10%`. Without this field, the failures count against `spec.failureBudget`.',
    numberOrShare(0),
  ),
  approval: choice(
    'With `Manual`, no node of this wave starts before somebody has approved the wave with `refit approve`. `None` is the default.',
    'None',
    'Manual',
  ),
}).meta(rules([isOneOf, WANTED]));

const isRestLast =
  'self.all(w, has(w.selector) || has(w.count) || has(w.percent) || w == self[size(self) - 1])';

export const wavesSchema = optional(
  'Waves of workers, which start one after the other. A wave without selector, count and percent takes all nodes that are left, and ' +
    'must be the last one; without such a wave Refit adds it. Controllers are in no wave: they come first, one at a time.',
  z
    .array(waveSchema)
    .min(1)
    .max(MOST_WAVES)
    .meta(rules([isRestLast, 'only the last wave may have neither selector, count nor percent'])),
);
