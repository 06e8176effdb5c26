/** Defines the status of an UpdateConfig. It is JSON in an annotation, because this kind has no status. */
import { z } from 'zod';
import type { UpdateConfig } from '../api/autopilot/update-config.ts';
import { annotated } from '../kube/resources.ts';
import { parseJson } from '../util/json.ts';
import { printable } from '../util/printable.ts';

const STATUS_ANNOTATION = 'upgrade.refit.dev/update-status';
/** Any new value of this annotation requests a check now. */
export const CHECK_ANNOTATION = 'upgrade.refit.dev/check';
export const KEPT_ANNOTATIONS = [STATUS_ANNOTATION, CHECK_ANNOTATION];

const statusSchema = z.object({
  /** The time of the last check. All times in this status are in RFC 3339. */
  checkedAt: z.string().optional(),
  /** The lowest version that a controller runs. */
  current: z.string().optional(),
  available: z.string().optional(),
  /** One word that says what Refit does about the release, or why it does nothing. */
  reason: z.string(),
  message: z.string(),
  nextCheck: z.string().optional(),
  nextWindow: z.string().optional(),
  /** Maps each version to the time when its release was seen first. It is present only if releases must have a minimum age. */
  seen: z.record(z.string(), z.string()).optional(),
  /**
   * The number of failed checks in a row, including a check that may still run. The next leader thus waits as long as
   * this leader would have waited.
   */
  failures: z.int().min(0).optional(),
  /** The generation of the UpdateConfig to which `failures` belongs. */
  generation: z.int().optional(),
  /** The last value of `CHECK_ANNOTATION` for which a check was made. */
  obeyed: z.string().optional(),
});

export type UpdateStatus = z.infer<typeof statusSchema>;

export function statusOf({ metadata }: UpdateConfig): UpdateStatus | undefined {
  return statusSchema.safeParse(parseJson(metadata.annotations?.[STATUS_ANNOTATION])).data;
}

/**
 * Returns the status with printable text only, because a server or the author of an UpdateConfig may have chosen a part of the
 * message.
 */
export function printableStatus(status: UpdateStatus): UpdateStatus {
  return { ...status, message: printable(status.message) };
}

/** Returns the patch that writes the status. Without a status, the patch removes the annotation. */
export function statusPatch(status: UpdateStatus | undefined): unknown {
  const text = status ? JSON.stringify(printableStatus(status)) : null;
  return { metadata: { annotations: { [STATUS_ANNOTATION]: text } } };
}

/** Returns the UpdateConfig as it is after this status is written. */
export function withStatus(config: UpdateConfig, status: UpdateStatus): UpdateConfig {
  return annotated(config, { [STATUS_ANNOTATION]: JSON.stringify(printableStatus(status)) });
}
