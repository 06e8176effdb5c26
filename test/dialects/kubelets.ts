/** The kubelets of a scene: they delete the pods whose containers have ended. */
import { pods } from '../../src/kube/resources.ts';
import type { Actor } from '../scenes/stage.ts';

export const kubelets: Actor = async ({ client }) => {
  const tick = async (): Promise<void> => {
    for (const { metadata } of (await client.list(pods)).items) {
      const { name, namespace = '', deletionTimestamp } = metadata;
      if (deletionTimestamp !== undefined)
        await client.delete(pods, name, { namespace, gracePeriodSeconds: 0 });
    }
  };
  return await Promise.resolve({ tick });
};
