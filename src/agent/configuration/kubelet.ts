/** Changes the kubelet's arguments in the file that kubeadm wrote for its unit, and restarts the kubelet. */

import { nodes, readyCondition } from '../../kube/resources.ts';
import type { ConfigurationItem } from '../../signal/node-configuration.ts';
import { sleep } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { KUBELET_LOG } from '../../util/kubelet-log.ts';
import type { HostParts } from '../host-parts.ts';
import type { Commands } from '../service/commands.ts';
import type { FileState } from './root-file.ts';

export const KUBELET_FLAGS = '/var/lib/kubelet/kubeadm-flags.env';

/**
 * This is the line as kubeadm writes it. Lines with escapes or quotes are refused, because systemd decides what they
 * mean.
 */
const LINE = /^KUBELET_KUBEADM_ARGS="([^"\\'$`\n]*)"$/m;

/**
 * Returns the file with these arguments. Everything else in it stays. Throws if the file has no line that it can
 * change.
 */
export function withArguments(
  before: FileState | undefined,
  items: readonly ConfigurationItem[],
): FileState {
  const text = Buffer.from(before?.content ?? '', 'base64').toString();
  const present = LINE.exec(text)?.[1]?.split(/\s+/).filter(Boolean);
  if (!before || !present?.every((word) => word.startsWith('--')))
    throw new Error(`${KUBELET_FLAGS} has no line KUBELET_KUBEADM_ARGS="--name=value ..."`);
  const wanted = new Map(wordsFor(items).map((word) => [nameIn(word), word]));
  const words = new Set([
    ...present.map((word) => wanted.get(nameIn(word)) ?? word),
    ...wanted.values(),
  ]);
  const after = text.replace(LINE, () => `KUBELET_KUBEADM_ARGS="${[...words].join(' ')}"`);
  return { ...before, content: Buffer.from(after).toString('base64') };
}

const nameIn = (word: string): string => word.split('=')[0] ?? '';

/** Returns the arguments as words of a command line. */
export function wordsFor(items: readonly ConfigurationItem[]): string[] {
  return items.map(({ name, content }) => `--${name.slice('kubelet:'.length)}=${content}`);
}

/**
 * Resolves once the kubelet is Ready again. If that takes longer than `readyTimeoutMs`, it rejects with the last error
 * in the kubelet's log.
 */
export async function restartKubelet(
  parts: HostParts,
  commands: Commands,
  name: string,
  stop: AbortSignal,
) {
  const { client, clock, options } = parts;
  const { readyTimeoutMs } = options.times;
  const heard = async () => {
    const node = await client
      .get(nodes, name, { abort: stop, deadlineMs: 10_000 })
      .catch(() => undefined);
    const { status, lastHeartbeatTime } = readyCondition(node) ?? {};
    return { isReady: status === 'True', at: Date.parse(lastHeartbeatTime ?? '') / 1000 };
  };
  // Heartbeats have a resolution of one second, and the second heartbeat of the new kubelet may come only after 5
  // minutes. So the first heartbeat of the new kubelet must not be in the same second as the last heartbeat of the old
  // kubelet.
  if ((await heard()).at >= Math.floor(clock.now() / 1000))
    await sleep(clock, 1_000, stop).catch(() => undefined);
  const since = Math.floor(clock.now() / 1000);
  await commands.start('systemctl', 'restart', 'kubelet');
  for (const end = clock.monotonic() + readyTimeoutMs; clock.monotonic() < end; ) {
    // A kubelet that has ended because of its arguments is inactive after this pause, because kubeadm's unit starts it
    // again only after 10 s. While it is inactive, the Node shows the last heartbeat of the old kubelet.
    await sleep(clock, 3_000, stop);
    const state = await commands.ask('systemctl', 'is-active', 'kubelet').catch(() => '');
    const { isReady, at } = await heard();
    if (isReady && at >= since && state !== '') return;
  }
  const log = ['--unit=kubelet', '--output=cat', '--no-pager', `--since=@${since}`];
  // The API server may run in a pod of this kubelet. So the restart counts as failed if the API server does not answer.
  // Then the old arguments are restored.
  const lines = (await commands.ask('journalctl', ...log).catch(() => '')).split('\n');
  const reason = lines.findLast((line) => /^E\d{4} |\berr=/.test(line)) ?? KUBELET_LOG;
  throw new Error(
    `the kubelet was not Ready ${formatDuration(readyTimeoutMs)} after its restart: ${reason}`,
  );
}
