/** The agent as a privileged DaemonSet, for hosts where nobody may install a service. */
import { VERSION } from '../../src/cli/version.ts';
import { AGENT_FLAGS } from '../../src/install/host/program.ts';
import { AGENT_ENVIRONMENT } from './agent-environment.ts';
import { object } from './objects.ts';

const LABELS = { 'app.kubernetes.io/name': 'refit', 'app.kubernetes.io/component': 'refit-agent' };
/** Any image with a shell, cp, mv and nsenter. */
const LAUNCHER = 'launcher-with-nsenter';
/** Of the agent: the chart puts its own in their place. */
const FLAGS = ['--kubeconfig=/var/lib/k0s/kubelet.conf'];

/** The file is there whole or not at all, and the agent becomes process 1's neighbour: it restarts services of the host. */
const SCRIPT = [
  'set -e',
  'mkdir -p /host/opt/refit',
  'cp /refit/usr/bin/refit /host/opt/refit/refit.new',
  'mv /host/opt/refit/refit.new /host/opt/refit/refit',
  `exec nsenter -t 1 -m -u -i -n -- /opt/refit/refit "--node-options=${AGENT_FLAGS.join(' ')}" agent "$@"`,
].join('\n');

/** In kube-system, because the namespace of Refit admits no privileged pod. */
export function agentDaemonSet(): object {
  return object('apps/v1', 'DaemonSet', 'refit-agent', 'kube-system', {
    spec: {
      selector: { matchLabels: LABELS },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '10%' } },
      template: {
        metadata: { labels: LABELS },
        spec: {
          hostPID: true,
          hostNetwork: true,
          // It uses the kubelet's credentials.
          automountServiceAccountToken: false,
          priorityClassName: 'system-node-critical',
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          tolerations: [{ operator: 'Exists' }],
          containers: [
            {
              name: 'agent',
              image: LAUNCHER,
              command: ['/bin/sh', '-c', SCRIPT, 'agent'],
              args: FLAGS,
              env: Object.entries(AGENT_ENVIRONMENT).map(([name, value]) => ({ name, value })),
              securityContext: { privileged: true },
              resources: { requests: { cpu: '10m', memory: '64Mi' } },
              volumeMounts: [
                { name: 'host', mountPath: '/host' },
                { name: 'refit', mountPath: '/refit', readOnly: true },
              ],
            },
          ],
          volumes: [
            { name: 'host', hostPath: { path: '/' } },
            { name: 'refit', image: { reference: `refit:${VERSION}`, pullPolicy: 'IfNotPresent' } },
          ],
        },
      },
    },
  });
}
