/** Gives the test file that runs next a real control plane: no other file uses it meanwhile. */
import { borrowControlPlane } from './control-plane.ts';

await borrowControlPlane();
