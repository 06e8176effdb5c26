/** The agent as a privileged DaemonSet, for hosts where nobody may install a service. */
import { VERSION } from '../../src/cli/version.ts';
import { DIRECTORY } from '../../src/install/host/agent-in-pod.ts';
import { AGENT_ENVIRONMENT } from './agent-environment.ts';
import { object } from './objects.ts';

const LABELS = { 'app.kubernetes.io/name': 'refit', 'app.kubernetes.io/component': 'refit-agent' };
/** The flags of the agent. The chart replaces them by its own flags. */
const FLAGS = ['--kubeconfig=/var/lib/k0s/kubelet.conf'];

/** Returns the DaemonSet. It is in kube-system, because the namespace of Refit admits no privileged pod. */
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
          // The agent uses the credentials of the kubelet.
          automountServiceAccountToken: false,
          priorityClassName: 'system-node-critical',
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          tolerations: [{ operator: 'Exists' }],
          containers: [
            {
              name: 'agent',
              image: `refit:${VERSION}`,
              imagePullPolicy: 'IfNotPresent',
              command: ['/usr/bin/refit', 'agent-in-pod'],
              args: FLAGS,
              env: Object.entries(AGENT_ENVIRONMENT).map(([name, value]) => ({ name, value })),
              // Sets the user, because the default user of the image is not root.
              securityContext: { privileged: true, runAsUser: 0, runAsGroup: 0 },
              resources: { requests: { cpu: '10m', memory: '64Mi' } },
              volumeMounts: [{ name: 'program', mountPath: DIRECTORY }],
            },
          ],
          volumes: [{ name: 'program', hostPath: { path: DIRECTORY, type: 'DirectoryOrCreate' } }],
        },
      },
    },
  });
}
