/** Upgrades containerd on a host, with what it starts. Its shims live on, so no container is restarted; its configuration stays. */
import { readyCondition } from '../kube/resources.ts';
import { messageOf, RefitError } from '../util/errors.ts';
import { attempt, type Containerd, saidBy } from './host.ts';
import { carryOut, type HostStepsParts, run, until } from './host-steps.ts';
import { containerdBody, putBackScript } from './scripts.ts';
import { isAt } from './verify.ts';

/** Milliseconds for containerd to start, and for the kubelet to report it. */
const UP_MS = 120_000;

/** Waits until the Node is Ready with that version. Otherwise puts back what was there, unless nobody could read the Node. */
export async function upgradeContainerd(on: HostStepsParts, containerd: Containerd): Promise<void> {
  const { version } = containerd;
  let isRead = true;
  try {
    await carryOut(on, 'containerd', containerdBody(containerd));
    await until(on, UP_MS, async () => {
      isRead = false;
      const node = await on.node();
      isRead = true;
      const reported = node.status?.nodeInfo?.containerRuntimeVersion ?? '';
      const [, found] = /^containerd:\/\/v?(\d+\.\d+\.\d+)/.exec(reported) ?? [];
      if (!isAt(found, version)) throw new Error(`the Node reports ${reported}`);
      if (readyCondition(node)?.status !== 'True') throw new Error('the Node is not Ready');
    });
  } catch (cause) {
    on.abort.throwIfAborted();
    const unread = `containerd ${version} stays: the Node cannot be read: ${messageOf(cause)}; run the upgrade again`;
    if (!isRead) throw new RefitError('REFIT_REFUSED', unread, { cause });
    const back = await attempt(run(on, putBackScript(on.rollout, containerd)));
    const said = saidBy(back);
    const undone = back.code === 0 ? `${said} was put back and started` : `the earlier one cannot be put back: ${said}`;
    const why = `containerd ${version} did not come up, see journalctl -u containerd on the host`;
    throw new RefitError('REFIT_REFUSED', `${undone}; ${why}`, { cause });
  }
}
