/** Warns before an upgrade about admission webhooks that may refuse what the upgrade writes. */
import type { Asking } from '../../../ready/asking.ts';
import { webhookProblems } from '../../../ready/checks/webhooks.ts';
import { type Finding, warn } from '../../../versions/findings.ts';

export interface WebhookFinding {
  readonly finding: Finding;
  /** The only node that serves the webhook. Its drain makes the webhook fail. */
  readonly only?: string;
}

/**
 * Resolves with the webhooks that may block an upgrade, by the check of `refit ready`. They are only warnings here, because
 * the obstacle may be gone when a node is drained.
 */
export async function webhookFindings(
  asking: Pick<Asking, 'list' | 'get'>,
  now: number,
): Promise<WebhookFinding[]> {
  const { problems, unread } = await webhookProblems({ ...asking, now });
  return [
    ...problems.map(({ finding: { object, message, cure }, ...more }) => ({
      ...more,
      finding: warn('webhook', [`${object}: ${message}`, cure ?? []].flat().join('; ')),
    })),
    ...unread.map(({ why, lacksRight }) => {
      const cure = lacksRight === true ? '; apply what `refit install rights kubeadm` prints' : '';
      return { finding: warn('webhook', `webhooks are not checked: ${why}${cure}`) };
    }),
  ];
}
