/** What is known of an UpdateConfig, as JSON in an annotation: its kind has no status. */
import { z } from 'zod';
import type { UpdateConfig } from '../api/autopilot/update-config.ts';
import { annotated } from '../kube/resources.ts';
import { parseJson } from '../util/json.ts';
import { printable } from '../util/printable.ts';

const STATUS_ANNOTATION = 'upgrade.refit.dev/update-status';
/** Any new value asks for a check now. */
export const CHECK_ANNOTATION = 'upgrade.refit.dev/check';
export const KEPT_ANNOTATIONS = [STATUS_ANNOTATION, CHECK_ANNOTATION];

const statusSchema = z.object({
  /** RFC 3339, as all times here. */
  checkedAt: z.string().optional(),
  /** Of the controllers; the lowest one. */
  current: z.string().optional(),
  available: z.string().optional(),
  /** One word: what is done, or why nothing is. */
  reason: z.string(),
  message: z.string(),
  nextCheck: z.string().optional(),
  nextWindow: z.string().optional(),
  /** Checks that failed in a row, with one that may still run: the next leader waits as long as this one would have. */
  failures: z.int().min(0).optional(),
  /** The generation of the UpdateConfig that `failures` is about. */
  generation: z.int().optional(),
  /** The last value of `CHECK_ANNOTATION` that was obeyed. */
  obeyed: z.string().optional(),
});

export type UpdateStatus = z.infer<typeof statusSchema>;

export function statusOf({ metadata }: UpdateConfig): UpdateStatus | undefined {
  return statusSchema.safeParse(parseJson(metadata.annotations?.[STATUS_ANNOTATION])).data;
}

/** As it is written: a server or the author of an UpdateConfig may have chosen a part of the message. */
export function printableStatus(status: UpdateStatus): UpdateStatus {
  return { ...status, message: printable(status.message) };
}

/** Without a status, the patch removes it. */
export function statusPatch(status: UpdateStatus | undefined): unknown {
  const text = status ? JSON.stringify(printableStatus(status)) : null;
  return { metadata: { annotations: { [STATUS_ANNOTATION]: text } } };
}

/** The UpdateConfig as it is once this status is written. */
export function withStatus(config: UpdateConfig, status: UpdateStatus): UpdateConfig {
  return annotated(config, { [STATUS_ANNOTATION]: JSON.stringify(printableStatus(status)) });
}
