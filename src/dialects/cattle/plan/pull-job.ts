/**
 * Renders the Job that pulls the image of a Plan on a node. It has no access to the host, and no label of the original, so
 * that the original never takes it for the Job of a Plan.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { PULL_LABEL } from '../../../drain/own-pods.ts';
import { apiVersionOf, type Job, type Node } from '../../../kube/resources.ts';
import { defined } from '../../../util/json.ts';
import type { CattleConfig } from './config.ts';
import { CORDONED, onHost } from './job.ts';
import * as names from './names.ts';

/** The annotation with the image that a Job pulls. */
export const PULLED_IMAGE = `${names.CONTROL_PREFIX}pulled-image`;
/** The annotation with the uid of the Node on which a Job pulls. */
export const PULLS_ON = `${names.CONTROL_PREFIX}pulls-on`;

const DEADLINE_S = 300;
/** The seconds after which Kubernetes deletes a finished Job. */
const TTL_S = 300;

/** The image that a node must have before it is cordoned. */
export interface Pull {
  readonly plan: CattlePlan;
  readonly node: Node;
  readonly hash: string;
  readonly image: string;
}

/** Returns the name of the Job that pulls for this hash of the Plan on the node. */
export function pullNameOf(planName: string, nodeName: string, hash: string): string {
  return names.shortenedName('refit-pull', planName, 'on', nodeName, 'with', hash);
}

/** Returns the Job. The images end with the command in their arguments, so `true` makes their container end at once. */
export function pullJobOf(config: CattleConfig, { plan, node, hash, image }: Pull): Job {
  const { name, namespace, uid = '' } = plan.metadata;
  const {
    serviceAccountName,
    priorityClassName,
    imagePullSecrets,
    tolerations = [],
  } = plan.spec ?? {};
  const labels = { [PULL_LABEL]: 'true' };
  const owner = { apiVersion: apiVersionOf(cattlePlans), kind: cattlePlans.kind, name, uid };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: pullNameOf(name, node.metadata.name, hash),
      ...defined({ namespace }),
      labels,
      annotations: { [PULLED_IMAGE]: image, [PULLS_ON]: node.metadata.uid ?? '' },
      ownerReferences: [owner],
    },
    spec: {
      completions: 1,
      parallelism: 1,
      backoffLimit: 0,
      activeDeadlineSeconds: DEADLINE_S,
      ttlSecondsAfterFinished: TTL_S,
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: 'Never',
          // The secrets of the ServiceAccount may allow the pull, but the pod gets no token.
          ...defined({ serviceAccountName, priorityClassName, imagePullSecrets }),
          automountServiceAccountToken: false,
          tolerations: [CORDONED, ...tolerations],
          affinity: { nodeAffinity: onHost(node) },
          containers: [
            {
              name: 'pull',
              image,
              args: ['true'],
              imagePullPolicy: config.job.imagePullPolicy,
              securityContext: {
                privileged: false,
                allowPrivilegeEscalation: false,
                capabilities: { drop: ['ALL'] },
                seccompProfile: { type: 'RuntimeDefault' },
              },
            },
          ],
        },
      },
    },
  };
}
