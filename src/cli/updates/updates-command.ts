/**
 * Runs `refit updates` and `refit updates check`: shows the channel of each UpdateConfig, and the times of its next
 * check and its next window.
 */
import { type UpdateConfig, updateConfigs } from '../../api/autopilot/update-config.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/status-error.ts';
import { CHECK_ANNOTATION, statusOf } from '../../updates/status.ts';
import { sleep } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { EXIT, RefitError } from '../../util/errors.ts';
import { printableUrl } from '../../util/printable-url.ts';
import type { ConnectionFlags } from '../options.ts';
import { connect, type SessionParts } from '../status/status-session.ts';
import { updateLines } from './update-lines.ts';

interface UpdatesFlags extends ConnectionFlags {
  readonly output: 'text' | 'json';
}

type Parts = Pick<SessionParts, 'clock' | 'output' | 'abort'>;

export async function showUpdates(flags: UpdatesFlags, parts: Parts): Promise<void> {
  using client = await connect(flags, 'refit-updates');
  render(await load(client, parts.abort), flags, parts);
}

const PATIENCE_MS = 60_000;
const POLL_MS = 200;
/** The reasons of a check that gave no information about the channel. */
const BAD = ['CheckFailed', 'InvalidConfig'];

/**
 * Makes the leader check the channel now, waits for the result, and prints it. `name` selects one UpdateConfig.
 * Resolves with exit code 1 if a check failed. Rejects with REFIT_CONTROL if no leader answers in time.
 */
export async function checkUpdates(
  name: string | undefined,
  flags: UpdatesFlags,
  parts: Parts,
): Promise<number> {
  const { clock, abort } = parts;
  using client = await connect(flags, 'refit-updates');
  const asked = new Date(clock.now()).toISOString();
  const wanted = (await load(client, abort)).filter(
    ({ metadata }) => name === undefined || metadata.name === name,
  );
  const absent = `there is no UpdateConfig${name === undefined ? '' : ` ${name}`}`;
  if (wanted.length === 0)
    throw new RefitError('REFIT_CONTROL', absent, {
      hint: 'apply one, with a channel in spec.channel',
    });
  const patch = { metadata: { annotations: { [CHECK_ANNOTATION]: asked } } };
  for (const { metadata } of wanted)
    await client.patch(updateConfigs, metadata.name, patch, { type: 'merge', abort });
  const names = wanted.map(({ metadata }) => metadata.name);
  const deadline = clock.monotonic() + PATIENCE_MS;
  for (;;) {
    const now = (await load(client, abort)).filter(({ metadata }) => names.includes(metadata.name));
    // An UpdateConfig that is being deleted is not awaited, because the leader does not check it.
    if (
      now.every(
        (each) => each.metadata.deletionTimestamp !== undefined || statusOf(each)?.obeyed === asked,
      )
    ) {
      render(now, flags, parts);
      return now.some((each) => BAD.includes(statusOf(each)?.reason ?? '')) ? EXIT.failed : EXIT.ok;
    }
    const hint =
      'check with `refit status` that a leader runs, and that the rights of `refit install rights updates` are applied';
    if (clock.monotonic() > deadline)
      throw new RefitError(
        'REFIT_CONTROL',
        `no leader has checked within ${formatDuration(PATIENCE_MS)}`,
        { hint },
      );
    await sleep(clock, POLL_MS, abort);
  }
}

async function load(client: KubeClient, abort: AbortSignal): Promise<UpdateConfig[]> {
  try {
    return (await client.listAll(updateConfigs, { abort })).items;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new RefitError(
      'REFIT_NO_CRD',
      'the cluster does not have the kind UpdateConfig, so it follows no channel',
      {
        hint: 'an UpdateConfig makes Plans of k0s only: `refit install controller` prints its definition; no other cluster needs it',
        cause: error,
      },
    );
  }
}

function render(
  configs: readonly UpdateConfig[],
  flags: UpdatesFlags,
  { output, clock }: Parts,
): void {
  const views = configs.map((config) => ({
    name: config.metadata.name,
    channel: config.spec.channel ?? 'stable',
    server: printableUrl(config.spec.updateServer ?? ''),
    ...statusOf(config),
  }));
  if (flags.output === 'json') return output.write(`${JSON.stringify(views, undefined, 2)}\n`);
  if (views.length === 0)
    return output.write('There is no UpdateConfig: this cluster follows no channel.\n');
  const lines = updateLines(configs, clock.now(), output.size().columns);
  output.write(`${lines.join('\n')}\n`);
}
