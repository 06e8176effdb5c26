/** Plays the scenes of the second tier. */
import { SECOND_TIER, testScenes } from '../played.ts';

testScenes(SECOND_TIER);
