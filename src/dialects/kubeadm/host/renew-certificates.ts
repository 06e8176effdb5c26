/**
 * Renews the certificates of a control-plane host with the kubeadm of that host, and restarts its static pods one after
 * the other.
 */
import { readyCondition } from '../../../kube/resources.ts';
import { KUBELET_LOG } from '../../../util/kubelet-log.ts';
import { endingSoon } from './certificates.ts';
import { filledScript } from './filled-script.ts';
import {
  carryOut,
  expectNone,
  type HostStepsParts,
  succeed,
  until,
  VERIFY_MS,
} from './host-steps.ts';
import { readFacts } from './probe.ts';
import { detached, LOCK_WAIT } from './scripts.ts';
import { podOf } from './verify.ts';

/**
 * The annotation that Refit sets on a static pod to restart it after a renewal of certificates. Its value is the uid of
 * the rollout that renewed the certificates.
 */
const RENEWED = 'upgrade.refit.dev/certificates';

export async function renewCertificates(on: HostStepsParts): Promise<void> {
  const { shells, host, rollout } = on;
  const found = await until(on, VERIFY_MS, async () => await readFacts(shells, host));
  const names = found.certificates.flatMap(({ renewal }) => renewal ?? []);
  const components = Object.keys(found.staticPods);
  const values = { RENEWALS: names.join(' '), STATIC_PODS: components.join(' ') };
  await carryOut(on, 'certificates', { script: 'certificates.sh', values });
  for (const component of components) {
    await succeed(on, 'certificates', restartScript(component, rollout));
    await until(on, VERIFY_MS, async () => {
      const pod = podOf(await on.pods(), host.name, component);
      const isNew = pod?.metadata.annotations?.[RENEWED] === rollout;
      const state = isNew ? 'is not ready' : 'was not restarted by the kubelet';
      if (!isNew || readyCondition(pod)?.status !== 'True')
        throw new Error(`${component} ${state}; ${KUBELET_LOG}`);
    });
  }
  await until(on, VERIFY_MS, async () => expectNone(await notRenewed(on)));
}

/**
 * Returns a script that changes the manifest of a static pod, so that the kubelet restarts the pod. The manifest is replaced by a
 * rename, so it is never missing.
 */
function restartScript(component: string, rollout: string): string {
  const values = { COMPONENT: component, NAME: RENEWED, ROLLOUT: rollout };
  return detached(filledScript('restart-static-pod.sh', values), LOCK_WAIT);
}

/**
 * Resolves with a sentence for each certificate on the disk that still ends soon, and with one sentence if the API
 * server does not serve its new certificate. The API server reloads the files of its certificates without a restart.
 */
async function notRenewed({ shells, host, clock, log }: HostStepsParts): Promise<string[]> {
  const { certificates } = await readFacts(shells, host);
  const own = certificates.filter(({ renewal }) => renewal !== undefined);
  const problems = endingSoon(own, clock.now(), false).map(
    (problem) => `${problem.found}, although it was renewed`,
  );
  const { stdout } = await shells.run(host, filledScript('served.sh', {}));
  const file = own.find(({ renewal }) => renewal === 'apiserver');
  if (stdout.trim() === 'unseen')
    log.warn('no curl on the host, so the certificate that its API server serves is not checked', {
      node: host.name,
    });
  if (!file || ['another', 'unseen'].includes(stdout.trim()) || Date.parse(stdout) === file.until)
    return problems;
  return [
    ...problems,
    `the API server does not serve ${file.file}; the certificate that it serves ends on: ${stdout.trim()}`,
  ];
}
