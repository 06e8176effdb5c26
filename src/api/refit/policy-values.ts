/**
 * Defines the schemas of values that several parts of an UpgradePolicy have: durations, and numbers or percentages of
 * nodes.
 */
import { z } from 'zod';
import { LONGEST, object, optional } from '../crd.ts';

const DURATION = /^([0-9]+(ms|s|m|h))+$/;
const PERCENT = /^([1-9][0-9]?|100)%$/;

/**
 * Returns CEL rules for a schema. They check what the schema itself cannot express. If a rule is false for an object,
 * the API server refuses the object with the message of the rule.
 */
export function rules(...all: readonly (readonly [rule: string, message: string])[]) {
  return { 'x-kubernetes-validations': all.map(([rule, message]) => ({ rule, message })) };
}

/**
 * The maximum length of texts that CEL rules read. The API server estimates the cost of a rule from the maximum length
 * of these texts.
 */
export const SHORT = 64;
export const isBelow = (longest: string): string =>
  `duration(self) > duration('0s') && duration(self) <= duration('${longest}')`;
const ABOVE_ZERO = 'a time above zero and below a year, such as 90s or 1h30m';
export const TIME = `must be ${ABOVE_ZERO}`;
const TIME_OR_ZERO = `must be 0s, or ${ABOVE_ZERO}`;
export const durationSchema = z
  .string()
  .regex(DURATION, 'is not a time; use for example 90s or 1h30m')
  .max(SHORT);

export const duration = (what: string) =>
  optional(what, durationSchema.meta(rules([isBelow('8760h'), TIME])));

/** A duration that may also be zero, such as `0s`. */
export const durationOrZero = (what: string) =>
  optional(
    what,
    durationSchema.meta(
      rules([`duration(self) == duration('0s') || (${isBelow('8760h')})`, TIME_OR_ZERO]),
    ),
  );

/** A number of nodes that is at least `least`, or a percentage such as `10%`. */
export const numberOrShare = (least: number) =>
  z
    .union([
      z.int().min(least),
      z.string().regex(PERCENT, 'is not a percentage; use for example 25%'),
    ])
    .meta({ 'x-kubernetes-int-or-string': true, minimum: least, pattern: PERCENT.source });

const keySchema = z.string().max(LONGEST.labelKey);
const valueSchema = z.string().max(LONGEST.labelValue);
const MOST_REQUIREMENTS = 100;
const ATOMIC = { 'x-kubernetes-list-type': 'atomic' };

/** Describes a label selector of Kubernetes. The limits keep it cheap to evaluate. */
export const boundedSelectorSchema = z
  .strictObject({
    matchLabels: optional(
      'The labels, with exactly these values.',
      z.record(keySchema, valueSchema).meta({ maxProperties: MOST_REQUIREMENTS }),
    ),
    matchExpressions: optional(
      'More requirements; each must be true.',
      z
        .array(
          object('One requirement.', {
            key: keySchema.describe('The label.'),
            operator: z
              .string()
              .max(LONGEST.word)
              .describe('`In`, `NotIn`, `Exists` or `DoesNotExist`.'),
            values: optional(
              'The values, with `In` and `NotIn` only.',
              z.array(valueSchema).max(MOST_REQUIREMENTS).meta(ATOMIC),
            ),
          }),
        )
        .max(MOST_REQUIREMENTS)
        .meta(ATOMIC),
    ),
  })
  .meta({ 'x-kubernetes-map-type': 'atomic' });
